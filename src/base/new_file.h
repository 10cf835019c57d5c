// A file that appears under its name only when it is complete, and what is left of those that never became
// so.
//
// It is written beside its place as PATH.unfinished-HOST-NUMBER and locked as long as its writer lives, so
// that processes which write the same file do not disturb each other. A writer that is killed leaves it
// there; the next one removes it.
#pragma once

#include <string>

namespace cohort {

/// Removes the unfinished files beside `path` whose writers are gone: those of this host and user that are
/// not locked, and those of other hosts, whose locks may not be seen here, that are not locked and have not
/// been written to for a day. What cannot be removed stays.
void remove_abandoned(const std::string& path) noexcept;

/// One thread at a time.
class NewFile {
 public:
  /// Removes what others have abandoned, and makes an empty file. @throws Unavailable when it cannot be made.
  explicit NewFile(std::string path);
  /// Removes the file unless it was published.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// To write to; stays open until the end of this object.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  /// Moves the file to its place, where it replaces another. @throws Unavailable.
  void publish();

 private:
  std::string path_;
  std::string unfinished_;  ///< empty once it is published
  int descriptor_ = -1;
};

}  // namespace cohort
