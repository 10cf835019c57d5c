// Very many all-reduces one after the other: each result is checked, and the memory of the process must not
// grow once it has warmed up. The environment says how many.
#pragma once

#include <cstdint>

#include <cohort/collective/communicator.h>

namespace cohort::testing {

/// As many as SOAK_SMALL says, by default 10^5.
[[nodiscard]] std::int64_t small_soak_rounds();
/// As many as SOAK_LARGE says, by default 10.
[[nodiscard]] std::int64_t large_soak_rounds();

/// All-reduces of a few elements, some of them several at a time. All members call it together; it
/// reports through GoogleTest what it finds wrong.
void soak_small(Communicator& communicator, std::int64_t rounds);

/// All-reduces of 16 MiB.
void soak_large(Communicator& communicator, std::int64_t rounds);

}  // namespace cohort::testing
