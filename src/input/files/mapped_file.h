// A file in memory, a window at a time: its bytes are tensors without a copy. A window is unmapped
// when the file has moved on and the last tensor over it is gone, so that reading a file of any
// size takes the memory of the elements that are in use, and of one window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <cohort/device/tensor.h>

#include "input_file.h"

namespace cohort::detail {

class MappedFile {
 public:
  /// @throws Unavailable when the file cannot be opened; InvalidArgument when it is not a regular one;
  /// DataLoss when it is empty.
  MappedFile(const std::string& path, std::string_view format);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Bytes that lie within the file; valid until the next call of either function.
  /// @throws DataLoss when the file has become shorter, or its device fails.
  [[nodiscard]] std::span<const std::byte> bytes(std::uint64_t offset, std::size_t count);

  /// A view of elements that lie within the file and are aligned there. Writing to it changes this
  /// process's copy of the page, not the file. @throws as bytes().
  [[nodiscard]] Tensor tensor(std::uint64_t offset, const Shape& shape, DType dtype);

 private:
  /// Makes the window hold these bytes.
  void reach(std::uint64_t offset, std::size_t count);

  InputFile file_;
  std::uint64_t size_;
  std::shared_ptr<const Buffer> window_;
  std::uint64_t window_offset_ = 0;
};

}  // namespace cohort::detail
