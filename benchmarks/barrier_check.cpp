#include "barrier_check.h"

#include <chrono>
#include <vector>

namespace cohort::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kCalls = 200;

double nanoseconds_now() {
  return std::chrono::duration<double, std::nano>(Clock::now().time_since_epoch()).count();
}

}  // namespace

std::optional<std::uint64_t> count_early_leavers(const std::function<void()>& barrier, const Team& team) {
  if (!team.shares_a_clock()) return std::nullopt;
  std::vector<double> last_came;
  std::vector<double> first_left;  // negated, so that the maximum over members is the earliest
  for (std::size_t call = 0; call < kCalls; ++call) {
    last_came.push_back(nanoseconds_now());
    barrier();
    first_left.push_back(-nanoseconds_now());
  }
  team.take_maximum(last_came);
  team.take_maximum(first_left);
  std::uint64_t early = 0;
  for (std::size_t call = 0; call < kCalls; ++call) {
    if (-first_left[call] < last_came[call]) ++early;
  }
  return early;
}

}  // namespace cohort::bench
