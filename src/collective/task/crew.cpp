#include <cohort/collective/crew.h>

namespace cohort {

std::size_t Crew::add(Steps steps) {
  steps_.push_back(std::move(steps));
  return gone_ + steps_.size() - 1;
}

bool Crew::advance() {
  bool moved = false;
  for (Steps& steps : steps_) {
    while (!steps.done() && steps.ready()) {
      steps.resume();
      moved = true;
      if (!steps.done() && steps.rests()) break;
    }
  }
  for (; !steps_.empty() && steps_.front().done(); ++gone_) steps_.pop_front();
  return moved;
}

bool Crew::done(std::size_t number) const noexcept { return number < gone_ || steps_[number - gone_].done(); }

// Every movement counts as progress of who waits, so that it does not take the long way for a standstill,
// and is followed by a rest, so that what is more urgent gets its turn.

Steps all_done(Crew& crew) {
  while (!crew.done()) {
    co_await until([&crew] { return crew.advance() || crew.done(); });
    co_await rest();
  }
}

Steps one_done(Crew& crew, std::size_t number) {
  while (!crew.done(number)) {
    co_await until([&crew] { return crew.advance(); });
    co_await rest();
  }
}

Steps beside(Crew& crew, Steps steps) {
  while (!steps.done()) {
    co_await until([&] {
      bool moved = crew.advance();
      for (; !steps.done() && steps.ready(); moved = true) {
        steps.resume();
        if (!steps.done() && steps.rests()) return true;
      }
      return moved;
    });
    co_await rest();
  }
}

}  // namespace cohort
