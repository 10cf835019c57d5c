#include "input_file.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/regular_file.h"

namespace cohort::detail {

namespace {

int open(const std::string& path, std::string_view format, InputFile::Pipes pipes) {
  const std::string what = fmt::format("{} file", format);
  return pipes == InputFile::Pipes::kTaken ? open_file_or_pipe(path, what) : open_regular_file(path, what);
}

/// False when nothing came in time.
bool wait_for_data(int descriptor, int milliseconds) {
  pollfd polled{descriptor, POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&polled, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

InputFile::InputFile(std::string path, std::string_view format, Pipes pipes)
    : path_(std::move(path)), descriptor_(open(path_, format, pipes)) {}

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

std::size_t InputFile::read(std::span<char> to) {
  constexpr int kForever = -1;
  constexpr int kUntilAWriterComesMs = 1000;  // one that was started at the same time
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t bytes = ::read(descriptor_, to.data() + done, to.size() - done);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) {
      static_cast<void>(wait_for_data(descriptor_, kForever));
      continue;
    }
    if (bytes < 0) throw DataLoss("{}: reading failed: {}", path_, std::strerror(errno));
    if (bytes == 0 && !std::exchange(has_begun_, true)) {
      // A pipe that nobody has opened for writing looks as if it had ended.
      if (wait_for_data(descriptor_, kUntilAWriterComesMs)) continue;
      throw Unavailable("'{}' is a pipe that nobody writes to; start the writer first", path_);
    }
    has_begun_ = true;
    if (bytes == 0) break;
    done += static_cast<std::size_t>(bytes);
  }
  return done;
}

}  // namespace cohort::detail
