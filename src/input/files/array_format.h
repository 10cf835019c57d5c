// Files that hold one array each, behind a header that says what array: IDX and .npy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <cohort/input/detail/file_source.h>

#include "array_header.h"
#include "array_rows.h"
#include "mapped_file.h"

namespace cohort::detail {

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
