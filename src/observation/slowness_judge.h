// On the chief: which worker or which link makes the others wait, decided from what all nodes tell, and said
// when that changes and at the end of the run.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/worker.h>

#include "link_judge.h"
#include "observed_call.h"

namespace cohort {

enum class LateFrom {
  kComputing,
  kInput,
  kWaitingForCore,  ///< which others use: more processes than cores
  kMovingData,
};

struct Straggler {
  int worker = -1;
  LateFrom cause = LateFrom::kComputing;
  double share_of_calls = 0;  ///< in which it was last
  double mean_lateness = 0;   ///< in seconds, of these calls
  double share_of_time = 0;   ///< that the others waited for it alone
};

/// `was last in 94 % of calls, by 5.1 ms on average: computing, not input or communication`.
[[nodiscard]] std::string to_string(const Straggler& straggler);

/// Of a communicator's members on one node.
struct ArrivalSource {
  std::string communicator = {};
  int node = 0;
  int nodes = 1;  ///< of the communicator
  bool shares_cores = false;
};

/// Decides from the arrivals of all nodes whether one worker makes the others wait, and why. A worker is
/// named when it was the one that all others waited for in most of the calls in which anybody waited for
/// about as long, twice in a row, and that costs a tenth of the time, or milliseconds at a time. One thread
/// at a time.
class StragglerJudge {
 public:
  /// The next call of a node, with times on the clock of all. Returns whether calls were judged with it.
  bool add(const ArrivalSource& source, const CallArrivals& arrivals);

  /// Who makes the others wait at present; nobody if that is not clear.
  [[nodiscard]] const std::optional<Straggler>& present() const noexcept { return present_; }
  /// Whether one worker was late by itself in the calls that were judged last, which is not enough to name
  /// it.
  [[nodiscard]] bool one_was_late() const noexcept {
    return before_ && before_->cause != LateFrom::kWaitingForCore;
  }
  /// Who makes the others wait in all calls since the beginning.
  [[nodiscard]] std::optional<Straggler> of_all_calls() const { return judge(all_); }

 private:
  struct Late {
    std::uint64_t calls = 0;
    std::int64_t lateness = 0;  ///< nanoseconds
    std::int64_t by_input = 0;  ///< of that
    /// Place i: the calls that it was late in by 2^(i-1) ns to 2^i ns.
    std::array<std::uint64_t, 64> calls_by_size = {};

    void add(std::int64_t late, std::int64_t by_input_of_it) noexcept {
      ++calls;
      lateness += late;
      by_input += by_input_of_it;
      ++calls_by_size[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(late)))];
    }
    [[nodiscard]] std::uint64_t calls_from(std::size_t size) const noexcept;
    /// That of the middle call.
    [[nodiscard]] std::size_t usual_size() const noexcept;
  };
  struct Tally {
    std::uint64_t calls = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool shares_cores = false;
    std::map<int, Late> late = {};          ///< by worker: through what it did
    std::map<int, Late> without_core = {};  ///< only through what others did on its core
  };
  using OfNodes = std::map<int, std::deque<CallArrivals>>;

  [[nodiscard]] static std::optional<CallArrivals> take_common(OfNodes& nodes);
  static void count(Tally& tally, const CallArrivals& call, bool shares_cores);
  [[nodiscard]] static std::optional<Straggler> judge(const Tally& tally);
  [[nodiscard]] static std::optional<Straggler> find_one(const std::map<int, Late>& by_worker,
                                                         const Tally& tally);

  std::map<std::string, OfNodes, std::less<>> waiting_;  ///< for other nodes, by communicator
  Tally window_;
  Tally all_;
  std::optional<Straggler> before_;
  std::optional<Straggler> present_;
};

struct SlownessJudgeOptions {
  std::vector<WorkerInfo> workers = {};  ///< by rank
  std::function<void(LateFrom cause, const std::string& line)> say = {};
  /// Gets what `slow_at_present` gives, when it has changed by more than its figures.
  std::function<void(std::vector<std::string> lines)> on_change = {};
};

/// Names stragglers and slow links. Any thread may call.
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
