#include "bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <limits>

namespace cohort::node {
namespace {

// Not the private kind: sleepers may be of other processes, which see the word at other addresses.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* limit) noexcept {
  static_assert(sizeof word == sizeof(std::uint32_t));
  ::syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

}  // namespace

Bell::Sleeper::Sleeper(Bell& bell) noexcept : bell_(bell) {
  bell_.sleepers_.fetch_add(1);
  rings_before_ = bell_.rings_.load();
}

void Bell::Sleeper::sleep(std::chrono::nanoseconds limit) const noexcept {
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  const timespec time{limit.count() / kNanosecondsPerSecond, limit.count() % kNanosecondsPerSecond};
  futex(bell_.rings_, FUTEX_WAIT, rings_before_, &time);
}

void Bell::wake_all() noexcept {
  rings_.fetch_add(1);
  futex(rings_, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr);
}

}  // namespace cohort::node
