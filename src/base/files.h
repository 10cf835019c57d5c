// The files that a program reads and writes as a whole: those that a user names are opened so that nothing
// else than a file is read, and new ones appear under their names only when they are complete.
#pragma once

#include <string>
#include <string_view>

namespace cohort {

/// Opens a file that a user names, for reading; the caller closes the descriptor. `what` is what messages
/// call it: `CSV file`. Never waits, as opening a pipe does until somebody writes to it.
/// @throws Unavailable when it cannot be opened, InvalidArgument when it is a folder, a pipe or a device.
[[nodiscard]] int open_regular_file(const std::string& path, std::string_view what);

/// The same for what is read once from its beginning to its end, and may be a pipe. The descriptor of a pipe
/// does not wait for data.
[[nodiscard]] int open_file_or_pipe(const std::string& path, std::string_view what);

/// A file that appears under its name only when it is complete.
///
/// Until then it has no name, where the file system can do that, so that a writer that is killed leaves
/// nothing. Elsewhere (as over NFS), and for the moment in which it replaces an older file, it is
/// PATH.unfinished-HOST-NUMBER, locked as long as its writer lives, so that processes which write the same
/// file do not disturb each other; the next writer removes what a killed one has left there.
///
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

/// Removes the unfinished files beside `path` whose writers are gone: those of this host and user that are
/// not locked, and those of other hosts, whose locks may not be seen here, that are not locked and have not
/// been written to for a day. What cannot be removed stays.
void remove_abandoned(const std::string& path) noexcept;

}  // namespace cohort
