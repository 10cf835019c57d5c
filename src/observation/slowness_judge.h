// On the chief: decides from what all nodes tell which worker or which link makes the others wait, and says
// so when that changes and at the end of the run. Any thread may call.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cohort/cluster/worker.h>

#include "link_judge.h"
#include "straggler_judge.h"

namespace cohort {

struct SlownessJudgeOptions {
  std::vector<WorkerInfo> workers = {};  ///< by rank
  std::function<void(LateFrom cause, const std::string& line)> say = {};
  /// Gets what `slow_at_present` gives, when it has changed by more than its figures.
  std::function<void(std::vector<std::string> lines)> on_change = {};
};

class SlownessJudge {
 public:
  explicit SlownessJudge(SlownessJudgeOptions options);

  /// Calls of the members on one node, with times on one clock for all nodes.
  void add(const ArrivalSource& source, std::span<const CallArrivals> calls);
  /// What a node whose first worker is `worker` saw of its send queues.
  void add(int worker, const QueueLooks& looks);

  /// A line for each worker or link that makes the others wait, which names it.
  [[nodiscard]] std::vector<std::string> slow_at_present() const;

  /// At the end of the run: says who was slow in all of it.
  void conclude();

 private:
  /// Who is slow, without figures.
  struct Verdict {
    int worker = -1;
    LateFrom cause = LateFrom::kComputing;
    int link = -1;

    friend bool operator==(const Verdict&, const Verdict&) = default;
  };

  void say_who_is_late();
  void say_whose_link_is_slow();
  [[nodiscard]] Verdict verdict() const;
  [[nodiscard]] std::vector<std::string> lines() const;
  [[nodiscard]] std::string name_of(int worker) const;

  const SlownessJudgeOptions options_;

  mutable std::mutex mutex_;
  StragglerJudge stragglers_;
  LinkJudge links_;
  std::optional<Straggler> said_;
  int said_link_of_ = -1;
  Verdict verdict_;
};

}  // namespace cohort
