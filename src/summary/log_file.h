// A file that grows at its end, and is whole as far as it was flushed: a flush that fails leaves what was
// there before.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cohort {

/// One thread at a time.
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

}  // namespace cohort
