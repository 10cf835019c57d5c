// How far the tasks of the training are, as a server knows it: the steps that they have made, and who has
// ended. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <cohort/remote/task_place.h>

#include "server/store/store.h"

namespace cohort::server {

/// The end of a step, as a process tells it.
struct StepEnd {
  static constexpr std::int64_t kNoOrigin = -1;  ///< the process was not told yet

  std::int64_t staleness = 0;
  std::int64_t count = 0;  ///< of this process's own steps, with the one that has ended
  std::int64_t origin = kNoOrigin;
};

/// How many steps each task of the training has made, so that none runs too far ahead of the slowest. Kept by
/// the first server.
///
/// Each process counts its own steps from 1 and says the count with each, so that a message that comes twice
/// counts once. A process that replaces a lost one begins where the slowest is: that is its origin, to which
/// its own steps are added. It is told, and says it with the next step, so that a server that was started
/// again knows where all are.
class StepClock {
 public:
  /// `tasks`: all that train, by name. Those that have not come yet count as having made no step, unless the
  /// server is `started_again`: then only those count that end a step from now on.
  explicit StepClock(const std::vector<std::string>& tasks, bool started_again = false);

  /// A process of `task` has made a step, and waits until all others have made all but `staleness` of as
  /// many: then `go_on` is called with the origin of the process, perhaps at once. The same step again counts
  /// once, and its `go_on` replaces the one from before.
  void end_step(const std::string& task, std::uint64_t incarnation, const StepEnd& end,
                std::function<void(std::int64_t origin)> go_on);

  /// This process of the task is lost, or has ended: nobody waits for it, and it waits for nobody. The task
  /// may come back.
  void leave(const std::string& task, std::uint64_t incarnation);

 private:
  struct Task {
    bool is_there = true;
    std::uint64_t incarnation = 0;
    std::int64_t origin = 0;
    bool guessed = false;  ///< the origin: nobody was there whose place is known
    std::int64_t count = 0;
    std::int64_t staleness = 0;
    std::function<void(std::int64_t origin)> go_on = {};  ///< null: does not wait

    [[nodiscard]] std::int64_t steps() const noexcept { return origin + count; }
  };

  [[nodiscard]] std::int64_t slowest() const;
  void begin(Task& own, std::uint64_t incarnation, std::int64_t told);
  void place_by(const Task& known);
  void release();

  bool started_again_;
  std::map<std::string, Task> tasks_;
};

/// Which tasks of the training have ended their part. It lies in the server's store, so that a server that is
/// started again does not wait for those who have gone.
class Farewells {
 public:
  Farewells(Store& store, const remote::TaskPlace& place);

  /// A chief or worker has ended its part, and will not come back.
  void add(const ClusterTask& task);

  [[nodiscard]] bool are_any() const { return count() > 0; }
  /// Whether chief and workers all have.
  [[nodiscard]] bool are_complete() const { return count() == std::ssize(tasks_); }

 private:
  [[nodiscard]] bool has(std::size_t task) const;
  [[nodiscard]] std::ptrdiff_t count() const;

  Store& store_;
  std::vector<ClusterTask> tasks_;  ///< of the job
};

}  // namespace cohort::server
