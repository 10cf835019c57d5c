// A file that appears under its name only when it is complete, and what is left of those that never became
// so.
//
// Until then it has no name, where the file system can do that, so that a writer that is killed leaves
// nothing. Elsewhere (as over NFS), and for the moment in which it replaces an older file, it is
// PATH.unfinished-HOST-NUMBER, locked as long as its writer lives, so that processes which write the same
// file do not disturb each other; the next writer removes what a killed one has left there.
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
  enum class Name {
    kLast,   ///< it gets one when it is complete, where that is possible
    kFirst,  ///< it has one from the beginning
  };

  /// Removes what others have abandoned, and makes an empty file. @throws Unavailable when it cannot be made.
  explicit NewFile(std::string path, Name name = Name::kLast);
  /// Removes the file unless it was published.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// To write to; stays open until the end of this object.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  /// Moves the file to its place, where it replaces another. @throws Unavailable.
  void publish();

 private:
  void open_with_name();

  std::string path_;
  std::string unfinished_;  ///< empty without a name, and once it is published
  int descriptor_ = -1;
};

}  // namespace cohort
