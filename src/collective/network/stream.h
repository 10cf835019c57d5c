// One member's data on its way to one other, in pieces of which a few are on their way
// at a time: what moves blocks of any length between two members. Cost  alpha + n beta.
#pragma once

#include <cstddef>

#include <cohort/collective/task.h>

#include "wire.h"

namespace cohort::network {

[[nodiscard]] Task<> stream_to(Wire& wire, int member, int tag, const std::byte* data, std::size_t bytes);
[[nodiscard]] Task<> stream_from(Wire& wire, int member, int tag, std::byte* into, std::size_t bytes);

}  // namespace cohort::network
