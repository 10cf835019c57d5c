#include <cohort/base/input_wait.h>

#include <chrono>

namespace cohort {
namespace {

thread_local int depth = 0;

std::uint64_t nanoseconds_now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
}

}  // namespace

InputWait::InputWait() noexcept : begin_(depth++ == 0 ? nanoseconds_now() : 0) {}

InputWait::~InputWait() {
  if (--depth == 0) total_.fetch_add(nanoseconds_now() - begin_, std::memory_order_relaxed);
}

}  // namespace cohort
