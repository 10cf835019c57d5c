// The extents of a tensor, outermost first. Rank 0 is a scalar with one element; a
// zero extent is legal and means an empty tensor. An immutable value, which costs no
// allocation: handles of tensors are copied all the time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace cohort {

class Shape {
 public:
  /// No tensor has more axes.
  static constexpr std::size_t kLargestRank = 8;

  Shape() = default;
  /// @throws InvalidArgument for more than `kLargestRank` extents, a negative extent, or more than
  /// 2^63-1 elements.
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents);
  explicit Shape(const std::vector<std::int64_t>& extents) : Shape(std::span(extents)) {}

  [[nodiscard]] int rank() const noexcept { return static_cast<int>(rank_); }
  [[nodiscard]] std::size_t elements() const noexcept { return elements_; }
  [[nodiscard]] std::span<const std::int64_t> extents() const& noexcept { return {extents_.data(), rank_}; }
  [[nodiscard]] std::vector<std::int64_t> extents() && {
    return {extents_.begin(), extents_.begin() + rank()};
  }

  /// Extent of `axis`; negative axes count from the end. @throws InvalidArgument when out of range.
  [[nodiscard]] std::int64_t operator[](int axis) const {
    return extents_[static_cast<std::size_t>(normalize_axis(axis))];
  }

  /// `axis` as a number from 0 to rank-1. @throws InvalidArgument naming the axis and the rank.
  [[nodiscard]] int normalize_axis(int axis) const {
    if (axis < -rank() || axis >= rank()) [[unlikely]]
      throw_no_such_axis(axis);
    return axis < 0 ? axis + rank() : axis;
  }

  /// This shape with another extent along `axis`.
  [[nodiscard]] Shape with(int axis, std::int64_t extent) const;

  /// This shape without `axis`.
  [[nodiscard]] Shape without(int axis) const;

  /// The shape of one row: everything but the outermost extent. @throws InvalidArgument for a scalar.
  [[nodiscard]] Shape row() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return std::ranges::equal(a.extents(), b.extents());
  }

 private:
  [[noreturn]] void throw_no_such_axis(int axis) const;

  std::array<std::int64_t, kLargestRank> extents_{};  // `rank_` of them
  std::size_t rank_ = 0;
  std::size_t elements_ = 1;
};

/// For example `[64, 10]`; a scalar is `[]`.
[[nodiscard]] std::string to_string(const Shape& shape);

}  // namespace cohort
