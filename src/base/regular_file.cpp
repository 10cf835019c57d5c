#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

#include "base/uninterrupted.h"

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

}  // namespace

int open_regular_file(const std::string& path, std::string_view what) {
  return open_one_of(false, path, what);
}

int open_file_or_pipe(const std::string& path, std::string_view what) {
  return open_one_of(true, path, what);
}

}  // namespace cohort
