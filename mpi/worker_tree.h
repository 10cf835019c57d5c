// The binomial tree along which workers agree, with worker 0 at its root [van de Geijn 1991]: log2(p) steps
// lead from the root to the lowest of p workers. The subtree of a worker is a range of ranks that begins with
// its own, so that what it has gathered is in the order of ranks.
#pragma once

#include <vector>

namespace cohort::mpi {

class WorkerTree {
 public:
  WorkerTree(int rank, int size);

  /// -1 at the root.
  [[nodiscard]] int parent() const noexcept;
  /// From the parent up to the root.
  [[nodiscard]] std::vector<int> ancestors() const;

  struct Subtree {
    int root = 0;
    int end = 0;  ///< one past the last rank
  };
  /// Those of this worker's children, in the order of ranks; together with itself they are its own subtree.
  [[nodiscard]] const std::vector<Subtree>& children() const noexcept { return children_; }

 private:
  int rank_;
  std::vector<Subtree> children_;
};

}  // namespace cohort::mpi
