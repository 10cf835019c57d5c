// Files that hold arrays: what a header says of one, and its rows, one after the other. The common part of
// fixed-length records, IDX and NumPy's files.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>
#include <cohort/input/detail/file_source.h>
#include <cohort/input/element_iterator.h>

#include "input_file.h"

namespace cohort::detail {

/// What a file's header says about its array, before it is checked.
struct ArrayHeader {
  DType dtype = DType::kUInt8;
  std::endian byte_order = std::endian::native;
  std::vector<std::int64_t> extents = {};  ///< outermost first
};

/// What its elements take; nothing when that is 2^63 or more. A row's size is checked even if there are no
/// rows.
[[nodiscard]] std::optional<std::uint64_t> bytes_of(const ArrayHeader& header);

/// The shape, checked to have `bytes` bytes and at least one row. `place` names the file, and the array in
/// it.
/// @throws InvalidArgument for an array without rows to iterate over; DataLoss when the sizes differ.
[[nodiscard]] Shape checked_shape(const ArrayHeader& header, std::uint64_t bytes, const std::string& place);

/// Where an array is in a file.
struct ArrayLayout {
  std::uint64_t offset = 0;  ///< of the first row in the file
  std::int64_t rows = 0;
  Shape row;  ///< the shape of each
  DType dtype = DType::kUInt8;
  std::endian byte_order = std::endian::native;
};

/// The rows, as views of the file where its bytes are an array of this machine, otherwise converted.
/// The array lies within the file. @throws DataLoss, when iterated, for a bool that is neither 0 nor 1.
[[nodiscard]] std::unique_ptr<ElementIterator<Tensor>> iterate_rows(std::unique_ptr<MappedFile> file,
                                                                    const ArrayLayout& layout);

/// Files that hold one array each, behind a header that says what array: IDX and .npy.
class ArrayFormat : public FileFormat<Tensor> {
 public:
  /// `name` outlives the format.
  explicit ArrayFormat(std::string_view name) : name_(name) {}

  [[nodiscard]] std::string_view name() const final { return name_; }

  [[nodiscard]] std::unique_ptr<ElementIterator<Tensor>> open(const std::string& path) const final {
    auto file = std::make_unique<MappedFile>(path, name_);
    const ArrayLayout layout = layout_of(*file);
    return iterate_rows(std::move(file), layout);
  }

  [[nodiscard]] Cardinality cardinality(const std::string& path) const final {
    MappedFile file(path, name_);
    return Cardinality::of(layout_of(file).rows);
  }

 protected:
  struct Header {
    ArrayHeader array;
    std::uint64_t bytes = 0;      ///< where it ends, and the array begins; within the file
    std::uint64_t following = 0;  ///< bytes after the array that are none of it
  };

  /// @throws DataLoss, InvalidArgument.
  [[nodiscard]] virtual Header read_header(MappedFile& file) const = 0;

 private:
  [[nodiscard]] ArrayLayout layout_of(MappedFile& file) const {
    const Header header = read_header(file);
    const Shape shape =
        checked_shape(header.array, file.size() - header.bytes - header.following, file.path());
    return {.offset = header.bytes,
            .rows = shape[0],
            .row = shape.row(),
            .dtype = header.array.dtype,
            .byte_order = header.array.byte_order};
  }

  std::string_view name_;
};

}  // namespace cohort::detail
