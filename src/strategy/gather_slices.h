// All-gather of sparse values: all members' rows, one member after the other.
#pragma once

#include <span>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/value/indexed_slices.h>

namespace cohort {

/// The k-th of each member's `slices` put together, for each k. Members may have different numbers of
/// rows, also none. One collective says what everybody has, then two per k move values and indices.
/// @throws InvalidArgument on every member when dtypes or dense shapes differ, naming who differs.
[[nodiscard]] std::vector<IndexedSlices> all_gather_slices(Communicator& communicator,
                                                           std::span<const IndexedSlices> slices);

}  // namespace cohort
