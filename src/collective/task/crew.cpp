#include <cohort/collective/crew.h>

namespace cohort {

std::size_t Crew::add(Task<> task) {
  tasks_.push_back(std::move(task));
  return gone_ + tasks_.size() - 1;
}

bool Crew::advance() {
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

bool Crew::done(std::size_t number) const noexcept { return number < gone_ || tasks_[number - gone_].done(); }

// Every movement counts as progress of who waits, so that it does not take the long way for a standstill,
// and is followed by a yield, so that what is more urgent gets its turn.

Task<> all_done(Crew& crew) {
  while (!crew.done()) {
    co_await until([&crew] { return crew.advance() || crew.done(); });
    co_await yield();
  }
}

Task<> one_done(Crew& crew, std::size_t number) {
  while (!crew.done(number)) {
    co_await until([&crew] { return crew.advance(); });
    co_await yield();
  }
}

Task<> beside(Crew& crew, Task<> task) {
  while (!task.done()) {
    co_await until([&] {
      bool moved = crew.advance();
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
