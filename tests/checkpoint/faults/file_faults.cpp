#include "file_faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace cohort::testing {
namespace {

// Calls by how they can fail.
enum Call : unsigned {
  kLook = 1,  // stat, opendir
  kRead = 2,
  kOpen = 4,
  kCreate = 8,
  kMakeFolder = 16,
  kWrite = 32,
  kResize = 64,
  kSync = 128,
  kClose = 256,
  kRename = 512,
  kRemove = 1024,
  kLock = 2048,
};

constexpr unsigned kAnyCall = 4095;

/// The calls that POSIX lets fail so.
unsigned calls_with(int error) {
  switch (error) {
    case EINTR: return kOpen | kCreate | kRead | kWrite | kResize | kSync | kClose | kLock;
    case ENOSPC: return kCreate | kMakeFolder | kWrite | kResize | kSync | kClose | kRename;
    case EACCES: return kOpen | kCreate | kMakeFolder | kRename | kRemove;
    case EXDEV: return kRename;
    default: return kAnyCall;
  }
}

std::string_view name_of(unsigned call) {
  switch (call) {
    case kLook: return "look";
    case kRead: return "read";
    case kOpen: return "open";
    case kCreate: return "create";
    case kMakeFolder: return "mkdir";
    case kWrite: return "write";
    case kResize: return "resize";
    case kSync: return "fsync";
    case kClose: return "close";
    case kRename: return "rename";
    case kRemove: return "remove";
    default: return "lock";
  }
}

constinit std::atomic<FileFaults*> current = nullptr;

std::string path_of(int descriptor) {
  std::array<char, PATH_MAX> path{};
  const ssize_t length =
      ::readlink(fmt::format("/proc/self/fd/{}", descriptor).c_str(), path.data(), path.size());
  return length < 0 ? "" : std::string(path.data(), static_cast<std::size_t>(length));
}

std::string path_at(int folder, const char* path) {
  return folder == AT_FDCWD || path[0] == '/' ? path : path_of(folder) + "/" + path;
}

/// Whether a call fails instead of being made.
template <class Path>
bool fails(Call call, Path path, std::size_t* bytes = nullptr) {
  FileFaults* faults = current;
  if (faults == nullptr) return false;
  const int before = errno;
  if constexpr (std::is_same_v<Path, int>) {
    if (faults->strikes(call, path_of(path), bytes)) return true;
  } else {
    if (faults->strikes(call, path, bytes)) return true;
  }
  errno = before;
  return false;
}

Call opening(int flags) { return (flags & O_CREAT) != 0 ? kCreate : kOpen; }

}  // namespace

FileFaults::FileFaults(std::string folder, FileFault fault, int number)
    : folder_(std::move(folder)), fault_(std::move(fault)), left_(number) {
  current = this;
}

FileFaults::~FileFaults() { current = nullptr; }

bool FileFaults::strikes(unsigned call, const std::string& path, std::size_t* bytes) {
  if (!path.starts_with(folder_)) return false;
  if (fault_.kind == FileFault::Kind::kShort && (bytes == nullptr || *bytes < 2)) return false;
  if (fault_.kind == FileFault::Kind::kError && (call & calls_with(fault_.error)) == 0) return false;
  const int left = left_.fetch_sub(1);
  if (left > 0 || (left < 0 && !fault_.is_lasting)) return false;
  if (left == 0) what_ = fmt::format("{} of '{}'", name_of(call), path);
  switch (fault_.kind) {
    case FileFault::Kind::kKill: ::kill(::getpid(), SIGKILL); return false;
    case FileFault::Kind::kShort: *bytes /= 2; return false;
    case FileFault::Kind::kAction: fault_.action(); return false;
    case FileFault::Kind::kError: errno = fault_.error; return true;
  }
  return false;
}

}  // namespace cohort::testing

// The C library's calls. Its headers say which of them do not throw.
using namespace cohort::testing;  // NOLINT(google-build-using-namespace): the functions below are not in one

// NOLINTBEGIN(misc-definitions-in-headers, readability-inconsistent-declaration-parameter-name)
/// The function of this name that would have been called.
#define COHORT_NEXT(function) \
  static const auto next = reinterpret_cast<decltype(&::function)>(::dlsym(RTLD_NEXT, #function))

extern "C" {

int open(const char* path, int flags, ...) {
  COHORT_NEXT(open);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails(opening(flags), std::string(path)) ? -1 : next(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  COHORT_NEXT(openat);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails(opening(flags), path_at(folder, path)) ? -1 : next(folder, path, flags, mode);
}

int close(int descriptor) {
  COHORT_NEXT(close);
  const bool has_failed = fails(kClose, descriptor);
  const int cause = errno;
  const int status = next(descriptor);  // Linux closes it in any case
  if (!has_failed) return status;
  errno = cause;
  return -1;
}

ssize_t read(int descriptor, void* bytes, size_t count) {
  COHORT_NEXT(read);
  return fails(kRead, descriptor, &count) ? -1 : next(descriptor, bytes, count);
}

ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
  COHORT_NEXT(pread);
  return fails(kRead, descriptor, &count) ? -1 : next(descriptor, bytes, count, offset);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  COHORT_NEXT(write);
  return fails(kWrite, descriptor, &count) ? -1 : next(descriptor, bytes, count);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  COHORT_NEXT(pwrite);
  return fails(kWrite, descriptor, &count) ? -1 : next(descriptor, bytes, count, offset);
}

ssize_t writev(int descriptor, const iovec* parts, int count) {
  COHORT_NEXT(writev);
  // A short one ends within the first part.
  size_t first = count > 0 ? parts->iov_len : 0;
  if (fails(kWrite, descriptor, &first)) return -1;
  return count > 0 && first != parts->iov_len ? ::write(descriptor, parts->iov_base, first)
                                              : next(descriptor, parts, count);
}

int fsync(int descriptor) { return fails(kSync, descriptor) ? -1 : 0; }
int fdatasync(int descriptor) { return fails(kSync, descriptor) ? -1 : 0; }

/// A thread that writes behind all others does so at once: the test is not to wait for whatever else runs.
int setpriority(__priority_which_t /*which*/, id_t /*who*/, int /*priority*/) noexcept { return 0; }

int ftruncate(int descriptor, off_t length) noexcept {
  COHORT_NEXT(ftruncate);
  return fails(kResize, descriptor) ? -1 : next(descriptor, length);
}

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
  COHORT_NEXT(fallocate);
  return fails(kResize, descriptor) ? -1 : next(descriptor, mode, offset, length);
}

int posix_fallocate(int descriptor, off_t offset, off_t length) {
  COHORT_NEXT(posix_fallocate);
  return fails(kResize, descriptor) ? errno : next(descriptor, offset, length);
}

int flock(int descriptor, int operation) noexcept {
  COHORT_NEXT(flock);
  return fails(kLock, descriptor) ? -1 : next(descriptor, operation);
}

int mkdir(const char* path, mode_t mode) noexcept {
  COHORT_NEXT(mkdir);
  return fails(kMakeFolder, std::string(path)) ? -1 : next(path, mode);
}

int rename(const char* from, const char* to) noexcept {
  COHORT_NEXT(rename);
  return fails(kRename, std::string(from)) ? -1 : next(from, to);
}

int remove(const char* path) noexcept {
  COHORT_NEXT(remove);
  return fails(kRemove, std::string(path)) ? -1 : next(path);
}

int unlink(const char* path) noexcept {
  COHORT_NEXT(unlink);
  return fails(kRemove, std::string(path)) ? -1 : next(path);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  COHORT_NEXT(unlinkat);
  return fails(kRemove, path_at(folder, path)) ? -1 : next(folder, path, flags);
}

int rmdir(const char* path) noexcept {
  COHORT_NEXT(rmdir);
  return fails(kRemove, std::string(path)) ? -1 : next(path);
}

int stat(const char* path, struct stat* status) noexcept {
  COHORT_NEXT(stat);
  return fails(kLook, std::string(path)) ? -1 : next(path, status);
}

int lstat(const char* path, struct stat* status) noexcept {
  COHORT_NEXT(lstat);
  return fails(kLook, std::string(path)) ? -1 : next(path, status);
}

int fstat(int descriptor, struct stat* status) noexcept {
  COHORT_NEXT(fstat);
  return fails(kLook, descriptor) ? -1 : next(descriptor, status);
}

DIR* opendir(const char* path) {
  COHORT_NEXT(opendir);
  return fails(kLook, std::string(path)) ? nullptr : next(path);
}

}  // extern "C"
// NOLINTEND(misc-definitions-in-headers, readability-inconsistent-declaration-parameter-name)
