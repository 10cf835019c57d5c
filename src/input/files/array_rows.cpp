#include "array_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "foreign_elements.h"

namespace cohort::detail {
namespace {

class ArrayRows final : public ElementIterator<Tensor> {
 public:
  ArrayRows(std::unique_ptr<MappedFile> file, const ArrayLayout& layout)
      : file_(std::move(file)),
        layout_(layout),
        row_bytes_(layout.row.elements() * size_of(layout.dtype)),
        converted_(is_swapped() || layout.offset % size_of(layout.dtype) != 0) {}

  std::optional<Tensor> next() override {
    if (row_ == layout_.rows) return std::nullopt;
    const std::uint64_t offset = layout_.offset + static_cast<std::uint64_t>(row_) * row_bytes_;
    ++row_;
    Tensor row = converted_ ? convert(offset) : file_->tensor(offset, layout_.row, layout_.dtype);
    require_valid_elements(row, file_->path(), offset);
    return row;
  }

  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = std::min(count, layout_.rows - row_);
    row_ += skipped;
    return skipped;
  }

 private:
  [[nodiscard]] bool is_swapped() const {
    return layout_.byte_order != std::endian::native && size_of(layout_.dtype) > 1;
  }

  [[nodiscard]] Tensor convert(std::uint64_t offset) {
    Tensor row = Tensor::uninitialized(layout_.row, layout_.dtype);
    std::memcpy(row.data(), file_->bytes(offset, row_bytes_).data(), row_bytes_);
    if (is_swapped()) swap_bytes(row);
    return row;
  }

  std::unique_ptr<MappedFile> file_;
  ArrayLayout layout_;
  std::size_t row_bytes_;
  bool converted_;  ///< the file's bytes are no array here as they are
  std::int64_t row_ = 0;
};

}  // namespace

std::unique_ptr<ElementIterator<Tensor>> iterate_rows(std::unique_ptr<MappedFile> file,
                                                      const ArrayLayout& layout) {
  return std::make_unique<ArrayRows>(std::move(file), layout);
}

}  // namespace cohort::detail
