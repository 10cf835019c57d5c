// What the datatypes and operators of a call are to Cohort: bytes to move, or elements to combine.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <cohort/collective/reduce_op.h>
#include <cohort/device/dtype.h>

#include "mpi_abi.h"

namespace cohort::preload {

/// What the elements of a predefined datatype are. Complex numbers are two floating-point numbers, which sums
/// do not mix; the bytes of other datatypes can be moved, but not combined.
enum class ElementKind { kInteger, kUnsigned, kFloating, kComplex, kBytes };

/// How a reduction of `count` elements of a datatype is carried out: of `count * numbers` elements of `dtype`.
struct Reduction {
  DType dtype;
  ReduceOp op;
  std::size_t numbers;
  bool is_exact;  ///< all orders give the same bits
};

/// Nothing where Cohort has no such operator, or MPI allows none for the datatype.
[[nodiscard]] std::optional<Reduction> reduction_of(MPI_Datatype type, MPI_Op op);

/// The bytes of one element that lie one after the other, for datatypes that are predefined and in one piece;
/// 0 for others.
[[nodiscard]] std::size_t bytes_in_one_piece(MPI_Datatype type);

/// Part of a caller's buffer: elements of a datatype, whose data may have gaps. `first` counts elements.
struct Elements {
  std::byte* buffer = nullptr;
  MPI_Datatype type = {};
  std::size_t count = 0;

  explicit Elements() = default;
  Elements(const void* begin, std::size_t elements, MPI_Datatype datatype) noexcept
      : buffer(static_cast<std::byte*>(const_cast<void*>(begin))), type(datatype), count(elements) {}

  [[nodiscard]] Elements part(std::size_t first, std::size_t part_count) const {
    Elements some = at(static_cast<std::ptrdiff_t>(first));
    some.count = part_count;
    return some;
  }
  /// As many elements, from this one on; before the buffer where it is negative.
  [[nodiscard]] Elements at(std::ptrdiff_t first) const { return {buffer + first * extent(), count, type}; }
  /// Of the data alone. Nothing where there is no buffer, or the MPI does not know the datatype.
  [[nodiscard]] std::optional<std::size_t> bytes() const;
  /// Whether the data lies in one piece, from `buffer` on.
  [[nodiscard]] bool in_one_piece() const { return count == 0 || bytes_in_one_piece(type) != 0; }

  // The data in the order of the elements, copied to or from where it lies in one piece.
  void pack(std::span<std::byte> to) const;
  void unpack(std::span<const std::byte> from) const;

 private:
  [[nodiscard]] std::ptrdiff_t extent() const;
};

/// The data of elements in one piece: where it is, or a copy.
class Packed {
 public:
  explicit Packed(const Elements& elements, std::size_t bytes) : elements_(elements) {
    if (elements.in_one_piece())
      data_ = elements.buffer;
    else
      data_ = room(bytes);
  }
  /// A copy in any case.
  [[nodiscard]] std::byte* room(std::size_t bytes) {
    copy_.resize(bytes);
    return copy_.data();
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  ~Packed() = default;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] bool is_copy() const noexcept { return !copy_.empty(); }

  /// Fills the copy, if it is one.
  void read() {
    if (is_copy()) elements_.pack(copy_);
  }
  /// Brings the copy back, if it is one.
  void write() const {
    if (is_copy()) elements_.unpack(copy_);
  }

 private:
  Elements elements_;
  std::byte* data_ = nullptr;
  std::vector<std::byte> copy_;
};

}  // namespace cohort::preload
