#include "shared_memory.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace cohort::remote {
namespace {

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;

[[noreturn]] void refuse(std::size_t bytes, const char* what) {
  throw Unavailable("no memory to share with tasks of this node: {} of {} bytes failed: {}", what, bytes,
                    std::strerror(errno));
}

watch::Fd make_file(std::size_t bytes) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  watch::Fd file(::memfd_create("cohort-remote", kFlags | MFD_NOEXEC_SEAL));
  if (!file && errno == EINVAL) file.reset(::memfd_create("cohort-remote", kFlags));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, kFixedSize) != 0) {
    refuse(bytes, "a file");
  }
  return file;
}

/// Two tasks' messages are of no use in a dump of one of them.
void leave_out_of_dumps(void* begin, std::size_t bytes) {
  static_cast<void>(::madvise(begin, bytes, MADV_DONTDUMP));
}

/// A page of every system that Cohort runs on.
constexpr std::size_t kPageBytes = std::size_t{64} << 10;

watch::Fd make_event() {
  watch::Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) throw Unavailable("the system has no eventfd to wake a task by: {}", std::strerror(errno));
  return event;
}

}  // namespace

View& View::operator=(View&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

View::~View() {
  if (begin_ != nullptr) ::munmap(begin_, bytes_);
}

SharedMemory::SharedMemory(std::size_t bytes) : file_(make_file(bytes)) {}

SharedMemory::SharedMemory(watch::Fd file, std::size_t bytes) : file_(std::move(file)) {
  struct stat status {};
  const bool fits = ::fstat(file_.get(), &status) == 0 && status.st_size == static_cast<off_t>(bytes);
  const int seals = ::fcntl(file_.get(), F_GET_SEALS);
  if (!fits || seals < 0 || (seals & kFixedSize) != kFixedSize) {
    throw DataLoss("what another task has sent as shared memory is not {} bytes of it", bytes);
  }
}

View SharedMemory::view(std::size_t offset, std::size_t bytes) const {
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), static_cast<off_t>(offset));
  if (memory == MAP_FAILED) refuse(bytes, "a mapping");
  leave_out_of_dumps(memory, bytes);
  return {static_cast<std::byte*>(memory), bytes};
}

View SharedMemory::view_twice(std::size_t offset, std::size_t bytes) const {
  void* memory = ::mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse(2 * bytes, "a mapping");
  View view(static_cast<std::byte*>(memory), 2 * bytes);
  for (std::byte* half : {view.data(), view.data() + bytes}) {
    if (::mmap(half, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.get(),
               static_cast<off_t>(offset)) == MAP_FAILED) {
      refuse(bytes, "a mapping");
    }
  }
  leave_out_of_dumps(view.data(), 2 * bytes);
  return view;
}

Doorbell::Doorbell() : Doorbell(SharedMemory(kPageBytes)) {}

Doorbell::Doorbell(SharedMemory page) : view_(page.view(0, kPageBytes)), event_(make_event()) {
  page_ = std::move(page).take_file();
}

Doorbell::Doorbell(watch::Fd page, watch::Fd event)
    : view_(SharedMemory(std::move(page), kPageBytes).view(0, kPageBytes)), event_(std::move(event)) {}

void Doorbell::strike() noexcept {
  // It cannot fail but for a count that is full, and then the sleeper is woken all the same.
  const std::uint64_t one = 1;
  static_cast<void>(!::write(event_.get(), &one, sizeof one));
}

}  // namespace cohort::remote
