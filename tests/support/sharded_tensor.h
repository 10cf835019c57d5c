// A tensor in shards that lie in this process: what the arithmetic of shards (cohort/server/shard_layout.h,
// "server/shards/selection.h") gives without servers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/server/index.h>
#include <cohort/server/shard_layout.h>

namespace cohort {

class ShardedTensor {
 public:
  /// Copies the rows of `whole`, so that a shard has nothing of the others'.
  ShardedTensor(const Tensor& whole, ShardLayout layout);

  [[nodiscard]] const ShardLayout& layout() const& noexcept { return layout_; }

  /// What `index` selects.
  [[nodiscard]] Tensor at(const Index& index) const;

  /// The rows of these numbers, in their order.
  [[nodiscard]] Tensor gather(std::span<const std::int64_t> rows) const;

 private:
  ShardLayout layout_;
  Shape shape_;
  std::vector<Tensor> shards_;
};

}  // namespace cohort
