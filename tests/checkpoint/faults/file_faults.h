// Faults of a file system, without one that is broken: a program that links this has the C library's calls on
// files replaced by calls that can fail.
//
// The calls on files below one folder are counted, those of all threads together. At the n-th of them the
// process is killed, the call fails, it reads or writes less than it was asked to, or something happens
// before it. What the C library calls itself, as the reading of a folder, is not seen. Nothing is brought to
// the disk: for processes that are killed it makes no difference.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

namespace cohort::testing {

struct FileFault {
  enum class Kind { kKill, kError, kShort, kAction };

  Kind kind = Kind::kKill;
  int error = 0;                      ///< the errno of kError
  std::function<void()> action = {};  ///< of kAction
  bool is_lasting = false;            ///< so do all calls after it
};

/// Calls fail as long as it lives. One at a time.
class FileFaults {
 public:
  /// `number` counts from 0 the calls that can fail so: there is no ENOSPC where nothing is written.
  FileFaults(std::string folder, FileFault fault, int number);
  ~FileFaults();
  FileFaults(const FileFaults&) = delete;
  FileFaults& operator=(const FileFaults&) = delete;

  /// What the first call was that was hit, as `rename of '/tmp/a'`; empty if none was.
  [[nodiscard]] const std::string& what() const noexcept { return what_; }

  /// Of the calls replaced. Whether this one fails, with errno set; `bytes` become fewer for a short one.
  [[nodiscard]] bool strikes(unsigned call, const std::string& path, std::size_t* bytes);

 private:
  std::string folder_;
  FileFault fault_;
  std::atomic<int> left_;
  std::string what_;
};

}  // namespace cohort::testing
