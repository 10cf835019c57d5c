// Files of logs, and the texts in them: fields of CSV and of JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/summary/summary_value.h>

namespace cohort {

/// A file that grows at its end, and is whole as far as it was flushed: a flush that fails leaves what was
/// there before. One thread at a time.
class LogFile {
 public:
  enum class Begin { kNew, kEmpty, kAtEnd };

  /// Makes the folder too. kNew refuses a file that exists, kEmpty empties it, and kAtEnd adds to it, after
  /// its last whole line. @throws Unavailable.
  LogFile(std::string path, Begin begin);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool is_empty() const noexcept { return size_ == 0 && pending_.empty(); }

  /// To memory.
  void append(std::string_view text) { pending_ += text; }

  /// Writes what was appended; where that fails it is lost. @throws Unavailable.
  void flush();

  /// Ends its use. @throws Unavailable where the system says only now that it could not write.
  void close();

  /// Puts this in place of all that the file has and what was appended, as a whole or not at all.
  /// @throws Unavailable.
  void replace(std::string_view text);

  /// Leaves out the lines, each without its end, that `keep` refuses. @throws Unavailable.
  void keep_lines(const std::function<bool(std::string_view)>& keep);

  /// @throws Unavailable.
  [[nodiscard]] std::string read() const;

 private:
  void open(Begin begin);
  void cut_last_line();
  [[noreturn]] void fail(std::string_view what) const;

  std::string path_;
  std::string pending_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;  ///< that has been written
};

// Fields of CSV files, RFC 4180.

/// In quotation marks where the field needs them. A line break becomes a space: a row is one line.
void append_csv(std::string& out, std::string_view field, char separator);

/// Of a line without its end; at least one.
[[nodiscard]] std::vector<std::string> csv_fields(std::string_view line, char separator);

// Values of summaries as JSON.

/// A number, a text, or lists of them.
void append_json(std::string& out, const SummaryValue& value);

}  // namespace cohort
