// What members of different nodes tell each other when something goes wrong: that the
// communicator has failed and why, and, when a deadline has passed, who is still here.
// Control messages are read by who waits, about once per millisecond, and cost nothing before.
//
// Whoever's deadline passes asks all; those who wait in a collective answer. Who does
// not within a moment is missing. When several ask at once, the one of the lowest rank
// concludes and the others adopt its error, so that all members report the same.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/collective/collective_call.h>
#include <cohort/collective/transport.h>

#include "topology.h"

namespace cohort::network {

class FailureDetector {
 public:
  FailureDetector(Transport& transport, const Topology& topology, std::vector<MemberInfo> members)
      : transport_(transport), topology_(topology), members_(std::move(members)) {}

  /// Reads what has arrived and answers questions, if this member waits in a collective. The failure
  /// of the group, if another node has reported it.
  [[nodiscard]] std::optional<Error> poll_failure(bool in_collective);

  /// For who has waited in `call` for longer than allowed: the error, once it is clear who is missing.
  [[nodiscard]] std::optional<Error> conclude_missing(const CollectiveCall& call, std::uint64_t number,
                                                      std::chrono::duration<double> allowed);

  /// What calls of this priority waited for has come.
  void drop(Priority priority) noexcept { query(priority).reset(); }

  /// For a leader that has waited in `call`: the error if the leader of another node waits in the same
  /// call, by its number, with another priority. They would never meet, so those in urgent calls say so
  /// once they have waited for long.
  [[nodiscard]] std::optional<Error> compare_priorities(const CallSignature& call,
                                                        std::chrono::duration<double> waited);

  /// Tells the members of other nodes. Any thread may call it.
  void report(const Error& failure);

 private:
  struct Query {
    Deadline end;
    std::vector<bool> present;
  };
  void handle(const Transport::ControlMessage& message, bool in_collective);
  void ask_all(Priority priority);
  [[nodiscard]] std::optional<Query>& query(Priority priority) noexcept {
    return queries_[static_cast<std::size_t>(priority)];
  }

  Transport& transport_;
  const Topology& topology_;
  std::vector<MemberInfo> members_;
  std::array<std::optional<Query>, kPriorities> queries_;  ///< by the priority of the late call
  std::optional<Deadline> turn_of_lower_;  ///< till when a member of lower rank may conclude_missing first
  std::optional<Error> reported_;
  std::optional<std::uint64_t> told_urgent_;       ///< the call of which other leaders know
  std::map<int, CallSignature> urgent_elsewhere_;  ///< by leader, the latest that it has told of
};

}  // namespace cohort::network
