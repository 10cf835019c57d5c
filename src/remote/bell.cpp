#include "bell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

namespace cohort::remote {
namespace {

/// A page of every system that Cohort runs on.
constexpr std::size_t kPageBytes = std::size_t{64} << 10;

watch::Fd make_event() {
  watch::Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) throw Unavailable("the system has no eventfd to wake a task by: {}", std::strerror(errno));
  return event;
}

}  // namespace

Bell::Bell() : Bell(SharedMemory(kPageBytes)) {}

Bell::Bell(SharedMemory page) : view_(page.view(0, kPageBytes)), event_(make_event()) {
  page_ = std::move(page).take_file();
}

Bell::Bell(watch::Fd page, watch::Fd event)
    : view_(SharedMemory(std::move(page), kPageBytes).view(0, kPageBytes)), event_(std::move(event)) {}

void Bell::strike() noexcept {
  // It cannot fail but for a count that is full, and then the sleeper is woken all the same.
  const std::uint64_t one = 1;
  static_cast<void>(!::write(event_.get(), &one, sizeof one));
}

}  // namespace cohort::remote
