// Looks at a job while it runs. On each node one process reads the records of all members there, from a
// thread of its own, so that calls pay nothing for it. It draws the timeline, if there is to be one, keeps
// the numbers of the run, and tells the chief of the arrivals that it saw; the chief names the worker that
// makes the others wait. Who asks is told what the job is doing. Any thread may call.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <cohort/cluster/worker.h>

#include "arrival_reader.h"
#include "chief_clock.h"
#include "collective/record/call_record.h"
#include "link_judge.h"
#include "look_server.h"
#include "numbers_keeper.h"
#include "slowness_judge.h"
#include "timeline.h"

namespace cohort {

class PeerWatch;

struct JobObserverOptions {
  std::vector<WorkerInfo> workers = {};  ///< by rank
  int rank = 0;
  bool name_stragglers = true;
  std::string timeline = {};  ///< file for a picture of the calls; empty: none
  NumbersOptions numbers = {};
  std::string job = {};  ///< what the launcher calls it
  int restarts = 0;      ///< how often it was started again
  /// Bring another worker, or all others, what this one tells them, for `hear`.
  std::function<void(int worker, std::string note)> tell = {};
  std::function<void(std::string note)> tell_all = {};
  /// On the chief: says who is slow, when that changes and at the end.
  std::function<void(LateFrom cause, const std::string& line)> say = {};
};

class JobObserver final : public RecordObserver {
 public:
  /// For worker `rank` of a job, as its settings want it, with who is slow on standard error. `watch` brings
  /// what the workers tell each other, and may be null; it outlives what the observer tells, until
  /// `fall_silent` or `conclude`. Null where there is nothing to look at.
  [[nodiscard]] static std::shared_ptr<JobObserver> of_job(std::vector<WorkerInfo> workers, int rank,
                                                           PeerWatch* watch, bool names_stragglers = true);

  explicit JobObserver(JobObserverOptions options);
  ~JobObserver() override;

  void add(ObservedGroup group) override;
  void remove(const void* id) noexcept override;
  [[nodiscard]] std::vector<std::string> slow_workers() const override;

  /// What the process of another worker has told.
  void hear(std::string_view note);

  /// Tells the chief what has not been told yet; nothing is read from here on.
  void stop() noexcept;

  /// Once all have stopped: nobody is told anything from here on. On the chief: who was slow in the whole
  /// run.
  void conclude();

  /// Nobody is told anything from here on.
  void fall_silent() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    ObservedGroup group;
    ArrivalReader reader;
    ArrivalSource source;
    GroupTally* tally = nullptr;  ///< null: nobody wants numbers
  };

  void tell_chief(std::string note) const { options_.tell(0, std::move(note)); }
  void tell_all_who_is_slow(const std::vector<std::string>& lines) const;
  bool hear_who_is_slow(std::string_view note);
  [[nodiscard]] JobLook look();
  [[nodiscard]] JobReport report_on(const ObservedGroup& group) const;
  [[nodiscard]] bool reads() const noexcept;
  /// Null: this process draws no calls.
  [[nodiscard]] Timeline* drawn() const noexcept { return timeline_ ? timeline_->calls() : nullptr; }
  void start_thread();
  void run(const std::stop_token& stop);
  [[nodiscard]] const WorkerInfo& self() const;
  void read_all();
  void read(Watched& watched);
  void read_last_calls(Watched& watched);
  void look_at_queues();
  void tell_looks();
  void tell(const ArrivalSource& source, std::span<const CallArrivals> calls);

  const JobObserverOptions options_;
  const Clock::time_point begin_ = Clock::now();

  ChiefClock clock_;

  std::mutex watching_;  ///< held while records are read
  std::condition_variable_any wakes_;
  bool stopping_ = false;
  std::map<const void*, Watched> watched_;
  std::unique_ptr<JobTimeline> timeline_;   ///< null: none
  std::unique_ptr<NumbersKeeper> numbers_;  ///< null: nobody wants any
  SendQueues queues_;
  Clock::time_point next_look_;
  QueueLooks looks_;  ///< since the chief was told

  std::unique_ptr<SlownessJudge> judge_;  ///< on the chief, if stragglers are to be named

  mutable std::mutex slow_mutex_;
  std::vector<std::string> slow_;  ///< as the chief has told

  std::unique_ptr<LookServer> looks_from_outside_;
  std::jthread thread_;  ///< from the first group on
};

}  // namespace cohort
