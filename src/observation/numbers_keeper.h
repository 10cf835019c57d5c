// Keeps the numbers of a run: the tallies of the groups that this process reads, and on the chief what the
// readers of other nodes tell.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/worker.h>

#include "collective/record/call_record.h"
#include "observed_call.h"
#include "run_numbers.h"

namespace cohort {

/// Adds up the calls of a communicator's members on one node, as one reader sees them. A member that makes
/// more calls between two readings than its record keeps has calls that nobody sees. Their number is known,
/// for calls are numbered; they are taken to be like those that the same reading has seen. One thread at a
/// time.
class GroupTally {
 public:
  explicit GroupTally(const ObservedGroup& group);

  /// A call as one member saw it. Each call comes once for each member, before the next one.
  void add(const ObservedCall& call);

  /// What has been added is one reading. `seconds_per_tick` is that of the stamps in records.
  void end_reading(std::span<const ObservedMessage> messages, double seconds_per_tick);

  /// The members make no more calls: what the last reading has missed counts as well.
  void finish();

  /// Of all readings; workers without `elapsed`.
  [[nodiscard]] const RunNumbers& numbers() const noexcept { return numbers_; }

 private:
  struct Member {
    const MemberRecord* record = nullptr;
    std::uint64_t waited = 0;  ///< ticks that have been added
  };
  struct Reading {
    RunNumbers numbers = {};
    std::uint64_t calls = 0;
  };

  void extrapolate(std::uint64_t calls);

  std::vector<Member> members_;
  std::map<int, double> members_of_worker_;
  std::uint64_t next_ = 0;  ///< the number of the call after those that were counted
  std::uint64_t read_ = 0;  ///< that of the call after the latest that was added
  Reading reading_;         ///< that is going on
  Reading latest_;          ///< with calls in it
  RunNumbers numbers_;
};

struct NumbersOptions {
  bool table = false;           ///< print it at the end
  std::string prometheus = {};  ///< file for Prometheus, which the chief writes; empty: none

  [[nodiscard]] bool wanted() const noexcept { return table || !prometheus.empty(); }
};

/// Writes the numbers for Prometheus while the run goes on, and prints the table at its end. The groups'
/// tallies belong to one thread at a time; `hear` and `write_if_due` may be called by any.
class NumbersKeeper {
 public:
  using Clock = std::chrono::steady_clock;
  using TellChief = std::function<void(std::string note)>;

  /// `workers` by rank; `tell_chief` is not called by the chief. The run begins now.
  NumbersKeeper(NumbersOptions options, std::vector<WorkerInfo> workers, int rank, TellChief tell_chief);

  /// The tally of a group that begins; stays valid until `finish`.
  [[nodiscard]] GroupTally* begin(const ObservedGroup& group);
  /// The group ends.
  void finish(GroupTally* tally);

  /// After a reading of all groups: tells the chief, when that is due.
  void tell_if_due();
  /// The chief has to look after the file, whether it reads groups or not.
  [[nodiscard]] bool writes() const noexcept { return rank_ == 0 && !options_.prometheus.empty(); }
  /// On the chief: writes the file, when that is due. May take as long as the file system does.
  void write_if_due();

  /// On the chief: whether the note was one of these.
  bool hear(std::string_view note);

  /// All groups end, and the chief is told the rest.
  void stop();

  /// On the chief, after all have stopped: the file for the last time, and the table.
  void conclude();

 private:
  [[nodiscard]] double elapsed() const;
  /// Of this process's groups, with the time until now.
  [[nodiscard]] RunNumbers own() const;
  [[nodiscard]] RunNumbers of_all() const;
  void tell();
  void write(double seconds);

  const NumbersOptions options_;
  const std::vector<WorkerInfo> workers_;
  const int rank_;
  const TellChief tell_chief_;
  const Clock::time_point begin_ = Clock::now();

  std::list<GroupTally> tallies_;
  RunNumbers finished_;  ///< of groups that have ended
  Clock::time_point next_note_;
  Clock::time_point next_file_;  ///< of the thread that writes
  double seconds_ = 0;           ///< that the run took
  bool cannot_write_ = false;

  mutable std::mutex telling_;
  std::map<int, RunNumbers> by_reader_;  ///< of the chief itself, too
};

}  // namespace cohort
