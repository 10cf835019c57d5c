// Adds up the calls of a communicator's members on one node, as one reader sees them. A member that makes
// more calls between two readings than its record keeps has calls that nobody sees. Their number is known,
// for calls are numbered; they are taken to be like those that the same reading has seen. One thread at a
// time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "collective/record/record_observer.h"
#include "observed_call.h"
#include "run_numbers.h"

namespace cohort {

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

}  // namespace cohort
