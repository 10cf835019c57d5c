#include "shared_memory.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

namespace cohort::remote {
namespace {

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;

[[noreturn]] void refuse(std::size_t bytes, const char* what) {
  throw Unavailable("no memory to share with tasks of this node: {} of {} bytes failed: {}", what, bytes,
                    std::strerror(errno));
}

/// Two tasks' messages are of no use in a dump of one of them. @throws Unavailable when there is no mapping.
MappedRange checked(MappedRange view, std::size_t bytes) {
  if (!view) refuse(bytes, "a mapping");
  static_cast<void>(::madvise(view.data(), view.bytes(), MADV_DONTDUMP));
  return view;
}

/// A page of every system that Cohort runs on.
constexpr std::size_t kPageBytes = std::size_t{64} << 10;

watch::Fd make_event() {
  watch::Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) throw Unavailable("the system has no eventfd to wake a task by: {}", std::strerror(errno));
  return event;
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes)
    : file_(make_memory_file("cohort-remote", bytes, FileSize::kFixed)) {
  if (!file_) refuse(bytes, "a file");
}

SharedMemory::SharedMemory(watch::Fd file, std::size_t bytes) : file_(std::move(file)) {
  struct stat status {};
  const bool fits = ::fstat(file_.get(), &status) == 0 && status.st_size == static_cast<off_t>(bytes);
  const int seals = ::fcntl(file_.get(), F_GET_SEALS);
  if (!fits || seals < 0 || (seals & kFixedSize) != kFixedSize) {
    throw DataLoss("what another task has sent as shared memory is not {} bytes of it", bytes);
  }
}

MappedRange SharedMemory::view(std::size_t offset, std::size_t bytes) const {
  return checked(MappedRange(file_.get(), offset, bytes, PROT_READ | PROT_WRITE, MAP_SHARED), bytes);
}

MappedRange SharedMemory::view_twice(std::size_t offset, std::size_t bytes) const {
  return checked(MappedRange::twice(file_.get(), offset, bytes), bytes);
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
