// One member's data on its way to one other, in pieces of which a few are on their way
// at a time: what moves blocks of any length between two members. Cost  alpha + n beta.
#pragma once

#include <cstddef>

#include <cohort/collective/steps.h>

#include "wire.h"

namespace cohort::network {

[[nodiscard]] Steps stream_to(Wire& wire, int member, int tag, const std::byte* data, std::size_t bytes);
[[nodiscard]] Steps stream_from(Wire& wire, int member, int tag, std::byte* into, std::size_t bytes);

}  // namespace cohort::network
