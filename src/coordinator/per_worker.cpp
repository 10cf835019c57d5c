#include <cohort/coordinator/per_worker.h>

#include <utility>

namespace cohort::coordinator {

void ReleasedPerWorkers::add(std::uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    numbers_.push_back(number);
  } catch (...) {  // NOLINT(bugprone-empty-catch): without memory for a number the elements stay
  }
}

std::vector<std::uint64_t> ReleasedPerWorkers::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(numbers_, {});
}

}  // namespace cohort::coordinator
