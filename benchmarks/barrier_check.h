// Whether a barrier is one: nobody leaves before everybody has come.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "team.h"

namespace cohort::bench {

/// In how many of some calls of `barrier` a member left before the last one came; the same on all
/// members. It takes a clock that all members share, so on several nodes there is no answer.
[[nodiscard]] std::optional<std::uint64_t> count_early_leavers(const std::function<void()>& barrier,
                                                               const Team& team);

}  // namespace cohort::bench
