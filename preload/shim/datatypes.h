// What the datatypes and operators of a call are to Cohort: bytes to move, or elements to combine.
#pragma once

#include <cstddef>
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

/// How a reduction of `count` elements of a datatype is carried out: of `count * numbers` elements of
/// `dtype`.
struct Reduction {
  DType dtype;
  ReduceOp op;
  std::size_t numbers;
  bool is_exact;  ///< all orders give the same bits
};

/// Null where Cohort has no such operator, or MPI allows none for the datatype.
[[nodiscard]] const Reduction* reduction_of(MPI_Datatype type, MPI_Op op);

/// What elements of a predefined datatype are; nothing for others.
[[nodiscard]] std::optional<ElementKind> element_kind(MPI_Datatype type) noexcept;

/// The layout of one element: its data, the way to the next one, and whether the data lies in order and
/// without gaps, so that elements are one piece.
struct Layout {
  std::size_t bytes = 0;
  std::ptrdiff_t extent = 0;
  bool in_one_piece = false;
};

/// Bytes of an element; 0 for a datatype that is not predefined, or of a language that the MPI lacks.
[[nodiscard]] std::size_t predefined_bytes(MPI_Datatype type);
/// By what the MPI says. Nothing where the datatype cannot be used.
[[nodiscard]] std::optional<Layout> layout_by_mpi(MPI_Datatype type);

/// The same for any datatype. In line, so that small calls keep it in registers.
[[nodiscard]] inline std::optional<Layout> layout_of(MPI_Datatype type) {
  const std::size_t bytes = predefined_bytes(type);
  if (bytes != 0) [[likely]]
    return Layout{bytes, static_cast<std::ptrdiff_t>(bytes), true};
  return layout_by_mpi(type);
}

/// Part of a caller's buffer: elements of a datatype, whose data may have gaps.
struct Elements {
  std::byte* buffer = nullptr;
  MPI_Datatype type = {};
  std::size_t count = 0;
  Layout layout = {.in_one_piece = true};

  [[nodiscard, gnu::always_inline]] static std::optional<Elements> of(const void* begin, std::size_t count,
                                                                      MPI_Datatype type) {
    const std::optional<Layout> layout = layout_of(type);
    if (!layout) return std::nullopt;
    const Elements elements{static_cast<std::byte*>(const_cast<void*>(begin)), type, count, *layout};
    if (elements.lack_memory()) return std::nullopt;
    return elements;
  }
  /// The MPI says so; data with gaps may count from MPI_BOTTOM.
  [[nodiscard]] bool lack_memory() const noexcept {
    return buffer == nullptr && bytes() > 0 && layout.in_one_piece;
  }

  [[nodiscard]] Elements part(std::size_t first, std::size_t part_count) const {
    Elements some = at(static_cast<std::ptrdiff_t>(first));
    some.count = part_count;
    return some;
  }
  /// As many elements, from this one on; before the buffer where it is negative.
  [[nodiscard]] Elements at(std::ptrdiff_t first) const {
    return {buffer + first * layout.extent, type, count, layout};
  }
  /// Of the data alone.
  [[nodiscard]] std::size_t bytes() const noexcept { return count * layout.bytes; }
  [[nodiscard]] bool in_one_piece() const noexcept { return layout.in_one_piece || count == 0; }

  // The data in the order of the elements, copied to or from where it lies in one piece.
  void pack(std::span<std::byte> to) const;
  void unpack(std::span<const std::byte> from) const;
};

/// The data of elements in one piece: where it is, or a copy.
class Packed {
 public:
  explicit Packed(const Elements& elements) : elements_(elements) {
    data_ = elements.in_one_piece() ? elements.buffer : room(elements.bytes());
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
