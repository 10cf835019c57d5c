// How many steps each task of the training has made, so that none runs too far ahead of the slowest. Kept by
// the first server.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cohort::server {

class StepClock {
 public:
  /// `tasks`: all that train, by name. Those that have not come yet count as having made no step, unless the
  /// server is `started_again`: then only those count that end a step from now on.
  explicit StepClock(const std::vector<std::string>& tasks, bool started_again = false);

  /// A process of `task` has made a step, and waits until all others have made all but `staleness` of as
  /// many: then `go_on` is called, perhaps at once. A new process begins where the slowest is.
  void end_step(const std::string& task, std::uint64_t incarnation, std::int64_t staleness,
                std::function<void()> go_on);

  /// This process of the task is lost, or has ended: nobody waits for it, and it waits for nobody. The task
  /// may come back.
  void leave(const std::string& task, std::uint64_t incarnation);

 private:
  struct Task {
    bool is_there = true;
    std::uint64_t incarnation = 0;
    std::int64_t steps = 0;
    std::int64_t waits_for = 0;        ///< steps of the slowest
    std::function<void()> go_on = {};  ///< null: does not wait
  };

  [[nodiscard]] std::int64_t slowest() const;
  void release();

  std::map<std::string, Task> tasks_;
};

}  // namespace cohort::server
