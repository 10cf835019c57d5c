#include "log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/files.h"
#include "base/json.h"
#include "base/system_calls.h"

namespace cohort {
namespace {

/// Whether all of it was written; errno says why not.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto written = uninterrupted([&] { return ::write(descriptor, text.data(), text.size()); });
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

int flags_of(LogFile::Begin begin) {
  if (begin == LogFile::Begin::kNew) return O_EXCL;
  return begin == LogFile::Begin::kEmpty ? O_TRUNC : 0;
}

}  // namespace

LogFile::LogFile(std::string path, Begin begin) : path_(std::move(path)) {
  std::error_code failed;  // if it matters, the file cannot be opened
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), failed);
  open(begin);
  if (begin == Begin::kAtEnd) cut_last_line();
}

LogFile::~LogFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LogFile::open(Begin begin) {
  const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | flags_of(begin);
  const int opened = uninterrupted([&] { return ::open(path_.c_str(), flags, 0666); });
  if (opened < 0) fail("cannot open");
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = opened;
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail("cannot open");
  if (!S_ISREG(status.st_mode))
    throw Unavailable("cannot write logs to '{}': it is no file; name one, or a new one", path_);
  size_ = status.st_size;
}

void LogFile::flush() {
  const bool is_whole = write_all(descriptor_, pending_);
  const int reason = errno;
  if (is_whole)
    size_ += static_cast<std::int64_t>(pending_.size());
  else  // so that readers find no part of a record; if that fails, they find the last one damaged
    std::ignore = ::ftruncate(descriptor_, size_);
  pending_.clear();
  errno = reason;
  if (!is_whole) fail("cannot write");
}

void LogFile::close() {
  // Linux has let the descriptor go whatever it returns.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail("cannot write");
}

std::string LogFile::read() const {
  std::string text(static_cast<std::size_t>(size_), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const auto got = uninterrupted([&] {
      return ::pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    });
    if (got < 0) fail("cannot read");
    if (got == 0) break;  // somebody has cut it
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

/// What a process that was killed has begun.
void LogFile::cut_last_line() {
  const std::string text = read();
  const auto whole = static_cast<std::int64_t>(text.rfind('\n') + 1);  // npos + 1 is 0
  if (whole == size_) return;
  if (::ftruncate(descriptor_, whole) != 0) fail("cannot shorten");
  size_ = whole;
}

void LogFile::keep_lines(const std::function<bool(std::string_view)>& keep) {
  flush();
  const std::string text = read();
  std::string kept;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view line(text.data() + begin, end - begin);
    if (keep(line.substr(0, line.size() - (line.ends_with('\n') ? 1 : 0)))) kept += line;
  }
  if (kept.size() < text.size()) replace(kept);
}

void LogFile::replace(std::string_view text) {
  pending_.clear();
  NewFile other(path_);
  if (!write_all(other.descriptor(), text)) fail("cannot write");
  other.publish();
  open(Begin::kAtEnd);
}

void LogFile::fail(std::string_view what) const {
  throw Unavailable("{} the log '{}': {}", what, path_, std::strerror(errno));
}

void append_csv(std::string& out, std::string_view field, char separator) {
  const bool quoted = field.find_first_of("\"\r\n") != std::string_view::npos ||
                      field.find(separator) != std::string_view::npos;
  if (quoted) out += '"';
  for (const char letter : field) {
    if (letter == '"') out += '"';
    out += letter == '\n' || letter == '\r' ? ' ' : letter;
  }
  if (quoted) out += '"';
}

std::vector<std::string> csv_fields(std::string_view line, char separator) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && line.substr(i + 1).starts_with('"'))
      fields.back() += line[i++];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == separator && !quoted)
      fields.emplace_back();
    else if (line[i] != '\r')
      fields.back() += line[i];
  }
  return fields;
}

namespace {

void append_list(std::string& out, const Tensor& doubles, std::span<const std::int64_t> extents,
                 std::size_t begin) {
  if (extents.empty()) return append_number(out, doubles.span<double>()[begin]);
  std::size_t inner = 1;
  for (const std::int64_t extent : extents.subspan(1)) inner *= static_cast<std::size_t>(extent);
  out += '[';
  for (std::size_t i = 0; i < static_cast<std::size_t>(extents[0]); ++i) {
    if (i > 0) out += ',';
    append_list(out, doubles, extents.subspan(1), begin + i * inner);
  }
  out += ']';
}

}  // namespace

void append_json(std::string& out, const SummaryValue& value) {
  if (const double* scalar = value.scalar()) return append_number(out, *scalar);
  if (const Tensor* tensor = value.tensor())
    return append_list(out, tensor->cast(DType::kFloat64), tensor->shape().extents(), 0);
  const std::vector<std::string>& texts = *value.texts();
  if (value.is_single) return append_quoted(out, texts.front(), BadUtf8::kLatin1);
  out += '[';
  for (const std::string& text : texts) {
    if (&text != texts.data()) out += ',';
    append_quoted(out, text, BadUtf8::kLatin1);
  }
  out += ']';
}

}  // namespace cohort
