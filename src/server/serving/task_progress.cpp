#include "task_progress.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace cohort::server {
namespace {

constexpr std::int64_t kNobody = std::numeric_limits<std::int64_t>::max();

/// Farewells are recorded as commits that change nothing, of an incarnation that no process has.
Execution record_of(std::size_t task) { return {0, task + 1}; }

}  // namespace

StepClock::StepClock(const std::vector<std::string>& tasks, bool started_again)
    : started_again_(started_again) {
  for (const std::string& task : tasks) tasks_.emplace(task, Task{.is_there = !started_again});
}

std::int64_t StepClock::slowest() const {
  std::int64_t steps = kNobody;
  for (const auto& [name, task] : tasks_) {
    if (task.is_there) steps = std::min(steps, task.steps());
  }
  return steps;
}

/// A process that was not there before, or that a server before this one has placed. The first one of a task
/// begins with the job, for all that is known.
void StepClock::begin(Task& own, std::uint64_t incarnation, std::int64_t told) {
  const bool is_first = own.incarnation == 0 && !started_again_;
  own.is_there = false;
  const std::int64_t others = slowest();
  const bool others_are_placed = std::ranges::any_of(
      tasks_, [](const auto& entry) { return entry.second.is_there && !entry.second.guessed; });
  own.guessed = told == StepEnd::kNoOrigin && !is_first && !others_are_placed;
  if (told != StepEnd::kNoOrigin)
    own.origin = told;
  else if (!is_first)
    own.origin = others == kNobody ? own.steps() : others;
  own.incarnation = incarnation;
  own.count = 0;
}

/// Those whose places were guessed now have one to compare with.
void StepClock::place_by(const Task& known) {
  for (auto& [name, task] : tasks_) {
    if (std::exchange(task.guessed, false)) task.origin = std::max(task.origin, known.steps() - task.count);
  }
}

void StepClock::end_step(const std::string& task, std::uint64_t incarnation, const StepEnd& end,
                         std::function<void(std::int64_t origin)> go_on) {
  Task& own = tasks_[task];
  if (own.incarnation != incarnation) begin(own, incarnation, end.origin);
  own.is_there = true;
  own.count = std::max(own.count, end.count);
  own.staleness = end.staleness;
  own.go_on = std::move(go_on);
  if (!own.guessed) place_by(own);
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
    if (task.go_on && task.steps() - task.staleness <= steps) std::exchange(task.go_on, nullptr)(task.origin);
  }
}

Farewells::Farewells(Store& store, const remote::TaskPlace& place) : store_(store) {
  for (const remote::Address& address : place.addresses) {
    if (address.task.type != "ps") tasks_.push_back(address.task);
  }
}

bool Farewells::has(std::size_t task) const { return store_.find_commit(record_of(task)).has_value(); }

void Farewells::add(const ClusterTask& task) {
  const auto place = std::ranges::find(tasks_, task);
  if (place == tasks_.end()) return;
  const auto index = static_cast<std::size_t>(place - tasks_.begin());
  if (has(index)) return;
  OpenCommit(store_).make(record_of(index), {});
}

std::ptrdiff_t Farewells::count() const {
  std::ptrdiff_t count = 0;
  for (std::size_t task = 0; task < tasks_.size(); ++task) count += has(task) ? 1 : 0;
  return count;
}

}  // namespace cohort::server
