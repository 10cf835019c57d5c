// What members of different nodes tell each other when something goes wrong, or may have: that the
// communicator has failed and why; that a member has left it by an error, and after how many calls; when a
// deadline has passed, which members are still here; when an urgent call has waited for 0.3 s, what it is.
// Members that wait read these control messages about once per millisecond; before, they cost nothing.
//
// A member whose deadline passes asks all others. Those that wait in a collective answer that they are here;
// those that wait elsewhere, for a message or in another communicator, say so. Members that do not answer
// within half a second, or less if the deadline is short, have stopped and are the first to blame. When
// several ask at once, the one of the lowest rank decides and the others adopt its error, so that all members
// report the same.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/collective/collective_call.h>

#include "collective/network/transport.h"
#include "topology.h"

namespace cohort::network {

/// Any thread may use it: one that waits in another communicator answers the questions of this one.
class FailureDetector {
 public:
  /// Borrows all of it.
  FailureDetector(Transport& transport, const Topology& topology, const std::vector<MemberInfo>& members)
      : transport_(transport), topology_(topology), members_(members) {}

  /// Reads what has arrived and answers whether this member is in a collective, to those that ask. A reason
  /// not to go on with the collective of this number: the failure of the group, if another node has reported
  /// it, or that a member has left by an error before it made this call. With kNoCall, any that has left
  /// counts.
  [[nodiscard]] std::optional<Error> poll_failure(bool in_collective, std::uint64_t number);
  static constexpr std::uint64_t kNoCall = std::numeric_limits<std::uint64_t>::max();

  /// For a member that has waited in `call` for longer than allowed: the error, once it is clear which
  /// members are missing. `by_transport`: the transport's own collectives carry the call, and do not tell
  /// whether data moves.
  [[nodiscard]] std::optional<Error> conclude_missing(const CollectiveCall& call, std::uint64_t number,
                                                      std::chrono::duration<double> allowed,
                                                      bool by_transport);

  /// Forgets the query of this priority, since its call has moved on.
  void drop(Priority priority) noexcept;

  /// For a leader that has waited in `call`: the error if the leader of another node waits in the same call,
  /// by its number, with another priority. They would never meet, so a leader in an urgent call tells the
  /// others once it has waited for long.
  [[nodiscard]] std::optional<Error> compare_priorities(const CallSignature& call,
                                                        std::chrono::duration<double> waited);

  /// Tells the members of other nodes that the group has failed.
  void report(const Error& failure);

  /// Tells them that this member leaves because of an error, after that many collectives. Members that are
  /// still in one of these finish it: this one has done its part.
  void report_leaving(const Error& reason, std::uint64_t collectives);

 private:
  struct Departure {
    std::uint64_t collectives;  ///< that the member has made
    Error reason;
  };
  enum class Place : std::uint8_t { kUnknown, kElsewhere, kHere };  ///< in the order of what is certain
  struct Query {
    std::chrono::milliseconds time_to_answer;
    Deadline end;
    int looks = 0;                ///< since then
    bool lets_others_go = false;  ///< first, since all have answered this member
    std::vector<Place> places;    ///< of the members

    [[nodiscard]] std::vector<int> members_at(Place place) const;
  };
  void handle(const Transport::ControlMessage& message, bool in_collective);
  void tell_other_nodes(const std::string& message);
  void ask_all(Priority priority, std::chrono::milliseconds time_to_answer);
  [[nodiscard]] Error error_of(const Query& query, const CollectiveCall& call, std::uint64_t number,
                               std::chrono::duration<double> allowed, bool by_transport) const;
  [[nodiscard]] std::optional<Query>& query(Priority priority) noexcept {
    return queries_[static_cast<std::size_t>(priority)];
  }

  Transport& transport_;
  const Topology& topology_;
  const std::vector<MemberInfo>& members_;
  std::mutex mutex_;                 ///< of all that follows
  std::vector<int> told_elsewhere_;  ///< members that shall hear once this one is in a collective
  std::array<std::optional<Query>, kPriorities> queries_;  ///< by the priority of the late call
  std::optional<Deadline> turn_of_lower_;  ///< until then a member of lower rank may decide first
  std::optional<Error> reported_;
  std::optional<Departure> departure_;             ///< the one after the fewest calls
  std::optional<std::uint64_t> told_urgent_;       ///< the urgent call that other leaders know of
  std::map<int, CallSignature> urgent_elsewhere_;  ///< by leader, its latest
};

}  // namespace cohort::network
