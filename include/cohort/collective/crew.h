// Algorithms that go on side by side, each at its own pace: the segments of a long
// collective, the streams to and from several members.
#pragma once

#include <cstddef>
#include <deque>

#include <cohort/collective/task.h>

namespace cohort {

class Crew {
 public:
  /// Its number, counted from 0 over the life of the crew.
  std::size_t add(Task<> task);

  /// Moves all of them on as far as they go without waiting; true when one of them moved.
  bool advance();

  [[nodiscard]] bool done(std::size_t number) const noexcept;
  [[nodiscard]] bool done() const noexcept { return tasks_.empty(); }

 private:
  std::deque<Task<>> tasks_;  ///< without those in front that are done
  std::size_t gone_ = 0;
};

/// Until all of the crew are done.
[[nodiscard]] Task<> all_done(Crew& crew);

/// Until this one of the crew is done.
[[nodiscard]] Task<> one_done(Crew& crew, std::size_t number);

/// Carries out `task`, and moves the crew on meanwhile.
[[nodiscard]] Task<> beside(Crew& crew, Task<> task);

}  // namespace cohort
