#include "leaf_reducer.h"

#include "gather_slices.h"
#include "leaf_arithmetic.h"

namespace cohort {

std::vector<TensorOrSlices> LeafReducer::all_reduced(Communicator& communicator,
                                                     std::span<const TensorOrSlices> leaves, ReduceOp op) {
  std::vector<Tensor> dense;
  std::vector<IndexedSlices> sparse;
  for (const TensorOrSlices& leaf : leaves) {
    if (const auto* slices = std::get_if<IndexedSlices>(&leaf))
      sparse.push_back(*slices);
    else
      dense.push_back(std::get<Tensor>(leaf));
  }
  const std::vector<Tensor> sums = dense_.all_reduced(communicator, dense, op);
  const std::vector<IndexedSlices> rows = all_gather_slices(communicator, sparse);

  std::vector<TensorOrSlices> results;
  results.reserve(leaves.size());
  auto next_sum = sums.begin();
  auto next_rows = rows.begin();
  for (const TensorOrSlices& leaf : leaves) {
    if (!is_sparse(leaf)) {
      results.emplace_back(*next_sum++);
      continue;
    }
    results.emplace_back(*next_rows++);
    if (op == ReduceOp::kMean) divide(results.back(), static_cast<std::size_t>(communicator.size()));
  }
  return results;
}

}  // namespace cohort
