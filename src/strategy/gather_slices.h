// All-gather of sparse values: all members' rows, one member after the other.
#pragma once

#include <span>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/value/indexed_slices.h>

namespace cohort {

/// Concatenates the k-th of each member's `slices`, for each k. Members may have different numbers of rows,
/// also none. One collective exchanges their descriptions, then two per k move values and indices.
/// @throws InvalidArgument on every member when dtypes or dense shapes differ, naming the members that
/// differ.
[[nodiscard]] std::vector<IndexedSlices> all_gather_slices(Communicator& communicator,
                                                           std::span<const IndexedSlices> slices);

}  // namespace cohort
