#include "line_reader.h"

#include <algorithm>
#include <cstring>
#include <span>

#include <cohort/base/error.h>

#include "compression.h"

namespace cohort::detail {
namespace {

/// Fits into the second-level cache together with what is made from it.
constexpr std::size_t kLeastBufferBytes = std::size_t{1} << 18;

}  // namespace

LineReader::LineReader(const std::string& path, std::string_view format)
    : file_(path, format, InputFile::Pipes::kTaken) {
  read_more();
  const std::string_view hint = compression_hint(std::as_bytes(std::span(buffer_).first(end_)), "");
  if (!hint.empty()) throw DataLoss("{}: not {}: {}", path, format, hint);
}

std::optional<std::string_view> LineReader::next() {
  std::size_t searched = 0;
  while (true) {
    const std::string_view unread(buffer_.data() + begin_, end_ - begin_);
    const std::size_t length = unread.find('\n', searched);
    if (length != std::string_view::npos) {
      ++line_number_;
      begin_ += length + 1;
      return unread.substr(0, length);
    }
    searched = unread.size();
    if (read_more()) continue;
    if (unread.empty()) return std::nullopt;
    ++line_number_;
    begin_ = end_;
    return std::string_view(buffer_.data() + end_ - searched, searched);  // the last line needs no newline
  }
}

bool LineReader::read_more() {
  const std::size_t unread = end_ - begin_;
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, unread);
  begin_ = 0;
  end_ = unread;
  if (end_ == buffer_.size()) buffer_.resize(std::max(kLeastBufferBytes, 2 * buffer_.size()));
  const std::size_t count = file_.read(std::span(buffer_).subspan(end_));
  end_ += count;
  return count > 0;
}

}  // namespace cohort::detail
