#include "leaf_reduction.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/fingerprint.h>
#include <cohort/device/tensor_ops.h>
#include <cohort/device/tensor_spec.h>

#include "collective/kernels/reduce_tensors.h"
#include "collective/packing/tensor_lists.h"
#include "device/device_runtime.h"

namespace cohort {
namespace {

bool alike(const TensorOrSlices& a, const TensorOrSlices& b) {
  if (is_sparse(a) != is_sparse(b) || values_of(a).dtype() != values_of(b).dtype()) return false;
  if (!is_sparse(a)) return values_of(a).shape() == values_of(b).shape();
  const auto& one = std::get<IndexedSlices>(a);
  const auto& other = std::get<IndexedSlices>(b);
  return one.dense_shape == other.dense_shape && one.indices.dtype() == other.indices.dtype();
}

DType result_dtype(ReduceOp op, DType dtype) { return op == ReduceOp::kMean ? mean_dtype(dtype) : dtype; }

Tensor reduced_tensors(ReduceOp op, std::span<const TensorOrSlices> components) {
  std::vector<Tensor> tensors;
  tensors.reserve(components.size());
  for (const TensorOrSlices& component : components) tensors.push_back(std::get<Tensor>(component));
  return reduced(op, tensors);
}

}  // namespace

DType mean_dtype(DType dtype) {
  if (is_floating(dtype) || dtype == DType::kBool) return dtype;
  return size_of(dtype) <= 2 ? DType::kFloat32 : DType::kFloat64;
}

void require_defined(ReduceOp op, const TensorOrSlices& leaf) {
  if (const auto* slices = std::get_if<IndexedSlices>(&leaf)) validate(*slices);
  require_legal(op, result_dtype(op, values_of(leaf).dtype()));
}

TensorOrSlices prepared(ReduceOp op, const TensorOrSlices& leaf) {
  require_defined(op, leaf);
  const Tensor& values = values_of(leaf);
  const DType dtype = result_dtype(op, values.dtype());
  return dtype == values.dtype() ? leaf : with_values(leaf, values.cast(dtype));
}

std::uint64_t converted_dtypes(ReduceOp op, std::span<const TensorOrSlices> leaves) {
  if (op != ReduceOp::kMean) return 0;
  Fingerprint fingerprint;
  for (const TensorOrSlices& leaf : leaves)
    fingerprint.add(static_cast<std::uint64_t>(values_of(leaf).dtype()));
  return fingerprint.value();
}

void require_alike(const Components& value, const std::function<std::string(std::size_t)>& name) {
  for (std::size_t i = 1; i < value.size(); ++i) {
    if (alike(value[i], value.front())) continue;
    throw InvalidArgument("reduce: {} has {}, {} has {}; without an axis, shapes must agree", name(i),
                          describe(value[i]), name(0), describe(value.front()));
  }
}

TensorOrSlices reduced(ReduceOp op, std::span<const TensorOrSlices> components) {
  if (!is_sparse(components.front())) return reduced_tensors(op, components);
  std::vector<IndexedSlices> parts;
  parts.reserve(components.size());
  for (const TensorOrSlices& component : components) parts.push_back(std::get<IndexedSlices>(component));
  TensorOrSlices all = concatenate(parts);
  if (op == ReduceOp::kMean) divide(all, components.size());
  return all;
}

void divide(const TensorOrSlices& leaf, std::size_t divisor) { divide(values_of(leaf), divisor); }

Components placed(const TensorOrSlices& result, const Destinations& destinations) {
  Components components;
  components.reserve(destinations.devices().size());
  bool given = false;
  for (const Device device : destinations.devices()) {
    const bool is_there = !given && values_of(result).device() == device;
    components.push_back(is_there ? result : copy_to(result, device));
    given = given || is_there;
  }
  return components;
}

namespace {

bool fit(const Shape& a, const Shape& b, int axis) {
  if (a.rank() != b.rank()) return false;
  const int along = axis < 0 ? axis + a.rank() : axis;
  for (int other = 0; other < a.rank(); ++other)
    if (other != along && a[other] != b[other]) return false;
  return true;
}

}  // namespace

Tensor gathered_along(Communicator& communicator, const Tensor& own, int axis, const CallPurpose& purpose) {
  const std::vector<Tensor> parts = all_gather_tensors(communicator, own);
  const auto name_of = [&](std::size_t member) {
    return describe(static_cast<int>(member), communicator.members()[member], {.caller = purpose.caller()});
  };
  for (std::size_t member = 1; member < parts.size(); ++member) {
    if (fit(parts[member].shape(), parts[0].shape(), axis)) continue;
    throw InvalidArgument(
        "shape mismatch: cannot gather along axis {}: {} has {}, {} has {}; only the extents "
        "along that axis may differ",
        axis, name_of(member), describe(parts[member]), name_of(0), describe(parts[0]));
  }
  return concatenate(parts, axis);
}

namespace {

// A member's description of one IndexedSlices is a row of integers: dtypes, rank, the extents of the dense
// shape, and the number of rows. All but the last must agree.
constexpr auto kWords = static_cast<std::int64_t>(Shape::kLargestRank) + 4;

using Words = std::span<std::int64_t>;

void describe_to(Words words, const IndexedSlices& slices) {
  const Shape& shape = slices.dense_shape;
  words[0] = static_cast<std::int64_t>(slices.values.dtype());
  words[1] = static_cast<std::int64_t>(slices.indices.dtype());
  words[2] = shape.rank();
  std::ranges::copy(shape.extents(), words.begin() + 3);
  words.back() = slices.indices.shape()[0];
}

std::string described(Words words) {
  const auto extents = words.subspan(3, static_cast<std::size_t>(words[2]));
  return fmt::format("rows of {}{} with {} indices", to_string(static_cast<DType>(words[0])),
                     to_string(Shape(std::span<const std::int64_t>(extents))),
                     to_string(static_cast<DType>(words[1])));
}

/// The members' descriptions of the k-th slices, by rank.
class Descriptions {
 public:
  Descriptions(Communicator& communicator, std::span<const IndexedSlices> slices) : slices_(slices.size()) {
    const auto count = static_cast<std::int64_t>(slices.size());
    const Tensor own = Tensor::zeros({count, kWords}, DType::kInt64);
    for (std::int64_t k = 0; k < count; ++k) {
      const Tensor row = own.row(k);
      describe_to(row.span<std::int64_t>(), slices[static_cast<std::size_t>(k)]);
    }
    all_ = Tensor::uninitialized({communicator.size(), count, kWords}, DType::kInt64);
    communicator.all_gather(own, all_);
    for (int member = 1; member < communicator.size(); ++member) {
      for (std::size_t k = 0; k < slices_; ++k) require_alike(communicator, member, k);
    }
  }

  /// How many elements each member has, by rank, of a tensor with `row_elements` per row.
  [[nodiscard]] std::vector<std::size_t> counts(std::size_t k, std::size_t row_elements) const {
    std::vector<std::size_t> result;
    for (std::int64_t member = 0; member < all_.shape()[0]; ++member)
      result.push_back(static_cast<std::size_t>(words(member, k).back()) * row_elements);
    return result;
  }

  [[nodiscard]] std::int64_t rows(std::size_t k) const {
    std::int64_t rows = 0;
    for (std::int64_t member = 0; member < all_.shape()[0]; ++member) rows += words(member, k).back();
    return rows;
  }

 private:
  [[nodiscard]] Words words(std::int64_t member, std::size_t k) const {
    const Tensor row = all_.row(member).row(static_cast<std::int64_t>(k));  // a view
    return row.span<std::int64_t>();
  }

  void require_alike(const Communicator& communicator, int member, std::size_t k) const {
    const Words theirs = words(member, k);
    const Words first = words(0, k);
    if (std::equal(theirs.begin(), theirs.end() - 1, first.begin())) return;
    throw InvalidArgument(
        "cannot gather IndexedSlices: {} has {}, {} has {}; dtypes and dense shapes must agree",
        describe(member, communicator.members()[static_cast<std::size_t>(member)]), described(theirs),
        describe(0, communicator.members()[0]), described(first));
  }

  std::size_t slices_;
  Tensor all_;
};

Tensor gathered(Communicator& communicator, const Tensor& own, const Shape& shape,
                std::span<const std::size_t> counts) {
  Tensor all = Tensor::uninitialized(shape, own.dtype(), own.device());
  communicator.all_gather_uneven(own, all, counts);
  return all;
}

}  // namespace

std::vector<IndexedSlices> all_gather_slices(Communicator& communicator,
                                             std::span<const IndexedSlices> slices) {
  if (slices.empty()) return {};
  const Descriptions descriptions(communicator, slices);
  std::vector<IndexedSlices> results;
  results.reserve(slices.size());
  for (std::size_t k = 0; k < slices.size(); ++k) {
    const auto& [values, indices, dense_shape] = slices[k];
    const std::int64_t rows = descriptions.rows(k);
    const std::size_t row_elements = dense_shape.row().elements();
    results.push_back(
        {gathered(communicator, values, dense_shape.with(0, rows), descriptions.counts(k, row_elements)),
         gathered(communicator, indices, {rows}, descriptions.counts(k, 1)), dense_shape});
  }
  return results;
}

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
