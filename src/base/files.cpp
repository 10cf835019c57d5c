#include "files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "system_calls.h"

namespace cohort {
namespace {

int open_one_of(bool pipes, const std::string& path, std::string_view what) {
  // The flags matter for what is refused: neither waits for a writer, nor takes a terminal.
  const int descriptor =
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); });
  if (descriptor < 0) throw Unavailable("cannot open {} '{}': {}", what, path, std::strerror(errno));
  struct stat status {};
  const bool is_known = ::fstat(descriptor, &status) == 0;
  const int cause = errno;
  if (is_known && (S_ISREG(status.st_mode) || (pipes && S_ISFIFO(status.st_mode)))) return descriptor;
  ::close(descriptor);
  if (!is_known) throw Unavailable("cannot look at {} '{}': {}", what, path, std::strerror(cause));
  throw InvalidArgument("cannot read {} '{}': it is a folder, {}; name a regular file", what, path,
                        pipes ? "or a device" : "a pipe or a device");
}

constexpr std::time_t kDay = 24 * 60 * 60;

/// `folder/` and `name` of a path; the folder is empty for one below the current folder.
std::pair<std::string, std::string> split(const std::string& path) {
  const std::size_t end = path.rfind('/') + 1;  // 0 where there is none
  return {path.substr(0, end), path.substr(end)};
}

std::string beginning_of_unfinished(const std::string& name) { return name + ".unfinished-"; }

/// A name that no other process chooses or guesses.
std::string unfinished_name(const std::string& path) {
  std::uint32_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    throw Unavailable("the system has no random numbers: {}", std::strerror(errno));
  return fmt::format("{}{}-{:08x}", beginning_of_unfinished(path), host_name(), number);
}

std::string name_of_descriptor(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

/// In the folder of `path`, and locked; -1 where that is not possible.
int open_without_name(const std::string& path) {
  const std::string folder = split(path).first;
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (descriptor < 0) return -1;
  const bool can_get_a_name = ::access(name_of_descriptor(descriptor).c_str(), F_OK) == 0;
  if (can_get_a_name && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

/// Removes this file if its writer is gone.
void remove_if_abandoned(const std::string& file, bool is_of_this_host) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return;
  struct stat status {};
  const bool judged = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                      status.st_uid == ::geteuid() &&
                      (is_of_this_host || std::time(nullptr) - status.st_mtime > kDay);
  if (judged && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) static_cast<void>(::unlink(file.c_str()));
  ::close(descriptor);
}

}  // namespace

int open_regular_file(const std::string& path, std::string_view what) {
  return open_one_of(false, path, what);
}

int open_file_or_pipe(const std::string& path, std::string_view what) {
  return open_one_of(true, path, what);
}

void remove_abandoned(const std::string& path) noexcept {
  try {
    const auto [folder, name] = split(path);
    const std::string beginning = beginning_of_unfinished(name);
    const std::string of_this_host = beginning + host_name() + "-";
    const auto close = [](DIR* open) { static_cast<void>(::closedir(open)); };
    const std::unique_ptr<DIR, decltype(close)> entries(::opendir(folder.empty() ? "." : folder.c_str()),
                                                        close);
    if (entries == nullptr) return;
    while (const dirent* entry = ::readdir(entries.get())) {
      const std::string_view found = entry->d_name;
      if (found.starts_with(beginning))
        remove_if_abandoned(folder + entry->d_name, found.starts_with(of_this_host));
    }
  } catch (const std::exception&) {
    // Only memory can run out here; what is left is tried again by the next writer.
  }
}

NewFile::NewFile(std::string path, Name name) : path_(std::move(path)) {
  remove_abandoned(path_);
  if (name == Name::kLast) descriptor_ = open_without_name(path_);
  if (descriptor_ < 0) open_with_name();
}

void NewFile::open_with_name() {
  while (true) {
    unfinished_ = unfinished_name(path_);
    // Exclusively, so that nobody's link or file under this name is followed or written to.
    descriptor_ = ::open(unfinished_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) throw Unavailable("cannot make a file beside '{}': {}", path_, std::strerror(errno));
    // Where the file system knows no locks, nobody takes this file for abandoned.
    const bool is_taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status {};
    if (!is_taken && (::fstat(descriptor_, &status) != 0 || status.st_nlink > 0)) return;
    ::close(descriptor_);  // another process found it before it was locked, and removes it
  }
}

NewFile::~NewFile() {
  if (!unfinished_.empty()) static_cast<void>(::unlink(unfinished_.c_str()));
  ::close(descriptor_);
}

void NewFile::publish() {
  const std::string without_name = unfinished_.empty() ? name_of_descriptor(descriptor_) : "";
  while (unfinished_.empty()) {  // a link replaces no file, but a rename does
    const std::string name = unfinished_name(path_);
    if (::linkat(AT_FDCWD, without_name.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
      unfinished_ = name;
    else if (errno != EEXIST)
      throw Unavailable("cannot complete '{}': {}", path_, std::strerror(errno));
  }
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0)
    throw Unavailable("cannot complete '{}': {}", path_, std::strerror(errno));
  unfinished_.clear();
}

}  // namespace cohort
