// The lines of a file, read through a buffer that grows to the longest of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "input_file.h"

namespace cohort::detail {

class LineReader {
 public:
  /// @throws Unavailable when the file cannot be opened; DataLoss when it cannot be read, or is compressed.
  LineReader(const std::string& path, std::string_view format);

  /// Whether the file is empty.
  [[nodiscard]] bool is_empty() const { return line_number_ == 0 && begin_ == end_; }

  /// The next line without its newline; nothing at the end. Valid until the next call.
  /// @throws DataLoss when the file cannot be read.
  [[nodiscard]] std::optional<std::string_view> next();

  /// The number, from 1, of the line that next() returned.
  [[nodiscard]] std::int64_t line_number() const { return line_number_; }
  [[nodiscard]] const std::string& path() const { return file_.path(); }

 private:
  /// False at the end of the file.
  bool read_more();

  InputFile file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  ///< of what has not been given yet
  std::size_t end_ = 0;    ///< of what has been read
  std::int64_t line_number_ = 0;
};

}  // namespace cohort::detail
