#include "gather_slices.h"

#include <algorithm>

#include <fmt/format.h>

namespace cohort {
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

}  // namespace cohort
