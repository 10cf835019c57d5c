// How a global batch is split among replicas: nearly equal parts in order, the first ones a row longer when
// the rows do not divide evenly. Parts may be empty.
#pragma once

#include <cstdint>
#include <vector>

namespace cohort {

/// Rows `begin` to `end-1` of a batch.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// The part of `replica` when `rows` rows are split among `replicas`.
[[nodiscard]] RowRange part_of(std::int64_t rows, int replica, int replicas);

/// The place of a worker's replicas among all.
struct WorkerPlace {
  int worker = 0;
  int workers = 1;
  int replicas_per_worker = 1;

  [[nodiscard]] int replicas() const { return workers * replicas_per_worker; }
};

/// The sizes into which a worker cuts each batch of `global_batch` elements of its own stream,
/// `place.replicas_per_worker` of them for a step. The workers begin at different places of the same list, so
/// that their replicas get `global_batch` elements in each step together.
[[nodiscard]] std::vector<std::int64_t> rebatch_sizes(std::int64_t global_batch, const WorkerPlace& place);

}  // namespace cohort
