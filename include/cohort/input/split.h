// How a global batch is split among replicas: nearly equal parts in order, the first
// ones a row longer when it does not divide. Parts may be empty.
#pragma once

#include <cstdint>

namespace cohort {

/// Rows `begin` to `end-1` of a batch.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// The part of `replica` when `rows` rows are split among `replicas`.
[[nodiscard]] RowRange part_of(std::int64_t rows, int replica, int replicas);

}  // namespace cohort
