#include "worker_tree.h"

#include <algorithm>

namespace cohort::mpi {
namespace {

/// The rank without its lowest bit that is set: distances to the children of a worker are the lower bits.
constexpr int parent_of(int rank) { return rank & (rank - 1); }

}  // namespace

WorkerTree::WorkerTree(int rank, int size) : rank_(rank) {
  for (int distance = 1; (rank & distance) == 0 && rank + distance < size; distance *= 2)
    children_.push_back({rank + distance, std::min(rank + 2 * distance, size)});
}

int WorkerTree::parent() const noexcept { return rank_ == 0 ? -1 : parent_of(rank_); }

std::vector<int> WorkerTree::ancestors() const {
  std::vector<int> ancestors;
  for (int rank = rank_; rank != 0;) ancestors.push_back(rank = parent_of(rank));
  return ancestors;
}

}  // namespace cohort::mpi
