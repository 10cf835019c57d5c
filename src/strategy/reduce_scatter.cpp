#include "reduce_scatter.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/device/tensor_spec.h>

#include "device/device_runtime.h"

namespace cohort {
namespace {

/// The extents along the axis, for one leaf of each replica.
struct Extents {
  std::vector<std::int64_t> parts;
  std::vector<std::int64_t> values;
};

/// The lengths of all replicas' parts and values: one exchange for all leaves.
class ExtentsOfAll {
 public:
  ExtentsOfAll(Communicator& communicator, std::span<const Tensor> values, std::span<const Shape> parts,
               int axis) {
    const auto leaves = static_cast<std::int64_t>(values.size());
    const Tensor own = Tensor::uninitialized({leaves, 2}, DType::kInt64);
    for (std::size_t leaf = 0; leaf < values.size(); ++leaf) {
      own.span<std::int64_t>()[2 * leaf] = parts[leaf][axis];
      own.span<std::int64_t>()[2 * leaf + 1] = values[leaf].shape()[axis];
    }
    all_ = Tensor::uninitialized({communicator.size(), leaves, 2}, DType::kInt64);
    communicator.all_gather(own, all_);
  }

  [[nodiscard]] Extents of_leaf(std::size_t leaf) const {
    Extents extents;
    for (std::int64_t member = 0; member < all_.shape()[0]; ++member) {
      const auto own = all_.row(member).row(static_cast<std::int64_t>(leaf)).span<std::int64_t>();
      extents.parts.push_back(own[0]);
      extents.values.push_back(own[1]);
    }
    return extents;
  }

 private:
  Tensor all_;
};

/// Every replica comes to the same result, since all of them see all extents.
void require_complete(const Extents& extents, const Communicator& communicator, std::size_t leaf) {
  const std::int64_t total = std::accumulate(extents.parts.begin(), extents.parts.end(), std::int64_t{0});
  if (extents.values.front() != total && std::ranges::count(extents.values, extents.values.front()) ==
                                             static_cast<std::ptrdiff_t>(extents.values.size())) {
    throw InvalidArgument(
        "reduce_scatter: the parts of tensor {} do not add up: it is {} long along that axis, they are {} "
        "together; by member: [{}]",
        leaf, extents.values.front(), total, fmt::join(extents.parts, ", "));
  }
  for (std::size_t member = 0; member < extents.values.size(); ++member) {
    if (extents.values[member] == total) continue;
    throw InvalidArgument(
        "reduce_scatter: the parts of tensor {} are {} long together, "
        "but {} gave a tensor of {} along that axis",
        leaf, total, describe(static_cast<int>(member), communicator.members()[member]),
        extents.values[member]);
  }
}

/// The parts one after the other, each padded to `block`; `value` itself if it needs no padding.
Tensor in_blocks(const Tensor& value, std::span<const std::int64_t> parts, const Shape& block, int axis) {
  const auto members = static_cast<std::int64_t>(parts.size());
  if (axis == 0 && value.shape()[0] == members * block[0]) return value;
  Tensor blocks =
      Tensor::zeros({members, static_cast<std::int64_t>(block.elements())}, value.dtype(), value.device());
  if (value.elements() == 0) return blocks;

  std::size_t row_bytes = size_of(value.dtype());
  for (int inner = axis + 1; inner < block.rank(); ++inner)
    row_bytes *= static_cast<std::size_t>(block[inner]);
  const std::size_t slab_bytes = static_cast<std::size_t>(value.shape()[axis]) * row_bytes;
  const std::size_t slabs = value.bytes() / slab_bytes;
  std::size_t offset = 0;
  for (std::int64_t member = 0; member < members; ++member) {
    const std::size_t bytes = static_cast<std::size_t>(parts[static_cast<std::size_t>(member)]) * row_bytes;
    if (bytes == 0) continue;
    copy_blocks({.to = blocks.row(member).data(),
                 .to_device = blocks.device(),
                 .to_pitch = bytes,
                 .from = value.data() + offset,
                 .from_device = value.device(),
                 .from_pitch = slab_bytes,
                 .width = bytes,
                 .count = slabs});
    offset += bytes;
  }
  return blocks;
}

Tensor scattered(Communicator& communicator, ReduceOp op, const Tensor& value, const Shape& part,
                 std::span<const std::int64_t> parts, int axis) {
  const Shape block = value.shape().with(axis, *std::ranges::max_element(parts));
  const Tensor result =
      Tensor::uninitialized({static_cast<std::int64_t>(block.elements())}, value.dtype(), value.device());
  const TensorSpec spec{block, value.dtype()};
  communicator.reduce_scatter(in_blocks(value, parts, block, axis), result, op,
                              {.layout = layout_of({&spec, 1})});
  return result.rows(0, static_cast<std::int64_t>(part.elements())).reshape(part);
}

}  // namespace

void require_part(const Tensor& value, const Shape& part, int axis) {
  if (value.shape().rank() == 0)
    throw InvalidArgument("reduce_scatter: a scalar has no parts; reshape it to [1] first");
  const int along = value.shape().normalize_axis(axis);
  if (part.rank() == value.shape().rank() && part == value.shape().with(along, part[along])) return;
  throw InvalidArgument("reduce_scatter: {} has no part {}; only axis {} may differ", describe(value),
                        to_string(part), along);
}

LeafList reduce_scatter_parts(Communicator& communicator, ReduceOp op, std::span<const Tensor> values,
                              std::span<const Shape> parts, int axis) {
  const ExtentsOfAll extents(communicator, values, parts, axis);
  LeafList results;
  results.reserve(values.size());
  for (std::size_t leaf = 0; leaf < values.size(); ++leaf) {
    const Extents along = extents.of_leaf(leaf);
    require_complete(along, communicator, leaf);
    results.emplace_back(scattered(communicator, op, values[leaf], parts[leaf], along.parts,
                                   values[leaf].shape().normalize_axis(axis)));
  }
  return results;
}

}  // namespace cohort
