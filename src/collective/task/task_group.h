// Tasks that go on side by side, each at its own pace: the segments of a long collective,
// the streams to and from several members.
//
// A group moves on only while a task awaits one of its three waits. What a task of the
// group throws is rethrown there. It must outlive what awaits it.
#pragma once

#include <cstddef>
#include <deque>

#include <cohort/collective/task.h>

namespace cohort {

class TaskGroup {
 public:
  /// Its number, counted from 0 over the life of the group.
  std::size_t add(Task<> task);

  /// Until all of them are done.
  [[nodiscard]] Task<> wait_for_all();

  /// Until this one is done.
  [[nodiscard]] Task<> wait_for(std::size_t number);

  /// Runs `task`, and moves the group on meanwhile.
  [[nodiscard]] Task<> run_alongside(Task<> task);

  /// Moves all of them on as far as they go without waiting; true when one of them moved.
  bool advance();

  [[nodiscard]] bool done(std::size_t number) const noexcept;
  [[nodiscard]] bool done() const noexcept { return tasks_.empty(); }

 private:
  std::deque<Task<>> tasks_;  ///< without those in front that are done
  std::size_t gone_ = 0;      ///< how many of those there were
};

}  // namespace cohort
