#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

namespace cohort {

int open_regular_file(const std::string& path, std::string_view what) {
  // The flags matter for what is refused: neither waits for a writer, nor takes a terminal.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) throw Unavailable("cannot open {} '{}': {}", what, path, std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) return descriptor;
  ::close(descriptor);
  throw InvalidArgument("cannot read {} '{}': it is a folder, a pipe or a device; name a regular file", what,
                        path);
}

}  // namespace cohort
