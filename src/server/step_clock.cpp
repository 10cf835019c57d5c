#include "server/step_clock.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace cohort::server {

StepClock::StepClock(const std::vector<std::string>& tasks, bool started_again) {
  for (const std::string& task : tasks) tasks_.emplace(task, Task{.is_there = !started_again});
}

std::int64_t StepClock::slowest() const {
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();
  for (const auto& [name, task] : tasks_) {
    if (task.is_there) steps = std::min(steps, task.steps);
  }
  return steps;
}

void StepClock::end_step(const std::string& task, std::uint64_t incarnation, std::int64_t staleness,
                         std::function<void()> go_on) {
  Task& own = tasks_[task];
  if (own.incarnation != incarnation) {
    own.is_there = false;
    const std::int64_t steps_of_others = slowest();
    const bool first = own.incarnation == 0;
    const bool alone = steps_of_others == std::numeric_limits<std::int64_t>::max();
    if (!first && !alone) own.steps = steps_of_others;
    own.incarnation = incarnation;
  }
  own.is_there = true;
  ++own.steps;
  own.waits_for = own.steps - staleness;
  own.go_on = std::move(go_on);
  release();
}

void StepClock::leave(const std::string& task, std::uint64_t incarnation) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return;
  if (found->second.incarnation != 0 && found->second.incarnation != incarnation) return;
  found->second.is_there = false;
  found->second.go_on = nullptr;
  release();
}

void StepClock::release() {
  const std::int64_t steps = slowest();
  for (auto& [name, task] : tasks_) {
    if (task.go_on && task.waits_for <= steps) std::exchange(task.go_on, nullptr)();
  }
}

}  // namespace cohort::server
