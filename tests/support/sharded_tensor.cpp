#include "sharded_tensor.h"

#include <utility>

#include "server/shards/selection.h"

namespace cohort {

ShardedTensor::ShardedTensor(const Tensor& whole, ShardLayout layout)
    : layout_(std::move(layout)), shape_(whole.shape()) {
  for (int shard = 0; shard < layout_.shards(); ++shard) {
    const RowRange rows = layout_.range(shard);
    shards_.push_back(whole.rows(rows.begin, rows.end).clone());
  }
}

Tensor ShardedTensor::at(const Index& index) const {
  const Selection selection = select(index, shape_);
  Tensor result = Tensor::uninitialized(selection.shape, shards_.front().dtype());
  const AxisRange& rows = selection.axes.front();
  for (const ShardRange& part : layout_.split(rows)) {
    std::vector<AxisRange> axes = selection.axes;
    axes.front() = part.rows;
    const std::size_t row_bytes = result.bytes() / static_cast<std::size_t>(rows.count);
    copy_selected(shards_[static_cast<std::size_t>(part.shard)], axes,
                  result.raw().subspan(static_cast<std::size_t>(part.position) * row_bytes,
                                       static_cast<std::size_t>(part.rows.count) * row_bytes));
  }
  return result;
}

Tensor ShardedTensor::gather(std::span<const std::int64_t> rows) const {
  Tensor result = Tensor::uninitialized(shape_.with(0, std::ssize(rows)), shards_.front().dtype());
  for (const ShardRows& part : layout_.split(rows)) {
    const Tensor& shard = shards_[static_cast<std::size_t>(part.shard)];
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
      result.row(part.positions[i]).copy_from(shard.row(part.rows[i]));
    }
  }
  return result;
}

}  // namespace cohort
