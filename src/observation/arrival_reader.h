// Reads from the records of a node's members, again and again, when they came to the calls that all of them
// have finished. Calls that were replaced in the meantime are left out. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collective/record/call_record.h"
#include "observed_call.h"

namespace cohort {

class ArrivalReader {
 public:
  explicit ArrivalReader(const ObservedGroup& group);

  using Take = std::function<void(const ObservedCall& call)>;

  /// The calls that have ended since, in their order. `now`: the time, on the clock that theirs
  /// are to be on, when `scale` was made.
  /// `take` gets each of them as each member saw it; may be null.
  [[nodiscard]] std::vector<CallArrivals> read(const StampScale& scale, std::int64_t now,
                                               const Take& take = {});

  /// The messages that were seen since the last time; those that were missed are part of what these stand
  /// for.
  [[nodiscard]] std::vector<ObservedMessage> take_messages() noexcept { return std::exchange(messages_, {}); }

  /// Whether some member has finished a call that others are still in.
  [[nodiscard]] bool misses_ends() const noexcept;

  /// Whether the first member is in a long call in which all members send as much.
  [[nodiscard]] bool moves_data_alike();

 private:
  /// A collective that its member has finished.
  struct Finished {
    std::uint64_t number = 0;
    EntryFields fields = {};
    std::uint64_t end = 0;  ///< 0: when the last member came
  };
  struct Member {
    const MemberRecord* record = nullptr;
    std::uint64_t entries_read = 0;
    std::deque<Finished> finished = {};
    std::optional<Finished> before = {};  ///< the call before the first of `finished`, with its end
    std::int64_t waited_for_core = 0;     ///< in all, in nanoseconds, at the last reading
  };

  void read_new(Member& member);
  void read_entries(Member& member, std::uint64_t& missed);
  void explain_by_cores(std::span<CallArrivals> calls);
  [[nodiscard]] bool align();
  [[nodiscard]] CallArrivals take_first(const StampScale& scale, std::int64_t now, const Take& take);

  bool spans_nodes_;
  bool shares_cores_;
  std::vector<Member> members_;
  std::vector<ObservedMessage> messages_;
};

}  // namespace cohort
