#include <cohort/strategy/hierarchical_copy_all_reduce.h>

#include <vector>

#include "collective/kernels/reduce_tensors.h"

namespace cohort {
namespace {

/// The sum of `parts`, in `parts[main]`.
void sum_on(std::size_t main, std::span<const Tensor> parts) {
  std::vector<Tensor> inputs{parts[main]};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != main) inputs.push_back(parts[i]);
  }
  reduce_into(ReduceOp::kSum, inputs, parts[main]);
}

void copy_from_main(std::size_t main, std::span<const Tensor> parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != main) parts[i].copy_from(parts[main]);
  }
}

}  // namespace

bool HierarchicalCopyAllReduce::fits(std::span<const Device> devices) const {
  return devices.size() % 2 == 0;
}

void HierarchicalCopyAllReduce::all_reduce(std::span<const Tensor> parts, int pack) {
  const std::size_t group_size = parts.size() / 2;
  const std::span<const Tensor> groups[] = {parts.first(group_size), parts.last(group_size)};
  // The summing devices of the two groups have the same index, which changes from pack to pack.
  const std::size_t turn = static_cast<std::size_t>(pack) % parts.size();
  const std::size_t main = turn % group_size;
  const std::size_t first = turn / group_size;
  const std::span<const Tensor> own = groups[first];
  const std::span<const Tensor> other = groups[1 - first];
  sum_on(main, own);
  sum_on(main, other);
  const Tensor sums[] = {own[main], other[main]};
  sum_on(0, sums);
  other[main].copy_from(own[main]);
  copy_from_main(main, own);
  copy_from_main(main, other);
}

}  // namespace cohort
