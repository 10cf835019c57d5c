#include "input_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/regular_file.h"

namespace cohort::detail {

InputFile::InputFile(std::string path, std::string_view format)
    : path_(std::move(path)), descriptor_(open_regular_file(path_, fmt::format("{} file", format))) {}

InputFile::~InputFile() { ::close(descriptor_); }

std::uint64_t InputFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0)
    throw Unavailable("cannot ask for the size of '{}': {}", path_, std::strerror(errno));
  return static_cast<std::uint64_t>(status.st_size);
}

std::uint64_t InputFile::size_of_content() const {
  const std::uint64_t bytes = size();
  if (bytes == 0) throw DataLoss("{}: the file is empty; write it again, or leave it out", path_);
  return bytes;
}

std::size_t InputFile::read(std::span<char> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t bytes = ::read(descriptor_, to.data() + done, to.size() - done);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) throw DataLoss("{}: reading failed: {}", path_, std::strerror(errno));
    if (bytes == 0) break;
    done += static_cast<std::size_t>(bytes);
  }
  return done;
}

}  // namespace cohort::detail
