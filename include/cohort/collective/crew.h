// Algorithms that go on side by side, each at its own pace: the segments of a long
// collective, the streams to and from several members.
#pragma once

#include <cstddef>
#include <deque>

#include <cohort/collective/steps.h>

namespace cohort {

class Crew {
 public:
  /// Its number, counted from 0 over the life of the crew.
  std::size_t add(Steps steps);

  /// Moves all of them on as far as they go without waiting; true when one of them moved.
  bool advance();

  [[nodiscard]] bool done(std::size_t number) const noexcept;
  [[nodiscard]] bool done() const noexcept { return steps_.empty(); }

 private:
  std::deque<Steps> steps_;  ///< without those in front that are done
  std::size_t gone_ = 0;
};

/// Until all of the crew are done.
[[nodiscard]] Steps all_done(Crew& crew);

/// Until this one of the crew is done.
[[nodiscard]] Steps one_done(Crew& crew, std::size_t number);

/// Carries out `steps`, and moves the crew on meanwhile.
[[nodiscard]] Steps beside(Crew& crew, Steps steps);

}  // namespace cohort
