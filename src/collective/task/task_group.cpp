#include "task_group.h"

namespace cohort {

std::size_t TaskGroup::add(Task<> task) {
  tasks_.push_back(std::move(task));
  return gone_ + tasks_.size() - 1;
}

bool TaskGroup::advance() {
  bool moved = false;
  for (Task<>& task : tasks_) {
    while (!task.done() && task.ready()) {
      task.resume();
      moved = true;
      if (!task.done() && task.has_yielded()) break;
    }
  }
  for (; !tasks_.empty() && tasks_.front().done(); ++gone_) tasks_.pop_front();
  return moved;
}

bool TaskGroup::done(std::size_t number) const noexcept {
  return number < gone_ || tasks_[number - gone_].done();
}

// Every movement counts as progress of the task that waits, so that a long transfer is not taken for a
// standstill, and is followed by a yield, so that more urgent calls get their turn.

Task<> TaskGroup::wait_for_all() {
  while (!done()) {
    co_await until([this] { return advance() || done(); });
    co_await yield();
  }
}

Task<> TaskGroup::wait_for(std::size_t number) {
  while (!done(number)) {
    co_await until([this] { return advance(); });
    co_await yield();
  }
}

Task<> TaskGroup::run_alongside(Task<> task) {
  while (!task.done()) {
    co_await until([&] {
      bool moved = advance();
      for (; !task.done() && task.ready(); moved = true) {
        task.resume();
        if (!task.done() && task.has_yielded()) return true;
      }
      return moved;
    });
    co_await yield();
  }
}

}  // namespace cohort
