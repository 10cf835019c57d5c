// Before data moves between nodes, the leaders find out whether the members of all nodes
// have called the same; small contributions piggyback on this exchange, and then nothing
// else needs to move. The pattern is the same whatever is called, so that members that
// disagree meet all the same. What each of them has called is asked only then, for a report.
//
// Each message begins with a summary of 8 bytes: the fingerprint of the call that all of some
// nodes have made, or that they have made several. Summaries merge in any order, so all
// leaders end with the same one.
//
// Dissemination [Hensgen, Finkel, Manber 1988], and of the contributions as in the all-gather of
// [Bruck et al. 1997]: in round k a leader passes what it knows to the one 2^k before it.
// Cost  ceil(log2 p) (alpha + 8 beta) + (p-1) n beta.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>

#include "lane.h"
#include "topology.h"

namespace cohort::network {

class RollCall {
 public:
  /// `leaders` is the lane of the leaders, lane 0; `piggyback_bytes` bounds all contributions together.
  RollCall(Lane leaders, const Topology& topology, std::size_t piggyback_bytes);

  /// This node's answer: what its members have called, nothing if they differ. Returns where to put their
  /// contributions, each of `contribution_bytes`, by local rank.
  std::byte* answer(const std::optional<CallSignature>& call, std::size_t contribution_bytes);

  /// The exchange; once.
  [[nodiscard]] Task<> execute();
  /// The same for callers that wait themselves: what they know leaves, and then they ask whether it has
  /// ended.
  void begin();
  [[nodiscard]] bool has_ended();

  /// Afterwards: whether all members have called the same; all leaders get the same answer.
  [[nodiscard]] bool is_unanimous() const noexcept { return summary_ != kSeveralCalls; }
  /// The contributions of a node's members, if all members have called the same.
  [[nodiscard]] std::span<const std::byte> payload_of(int node) const;

 private:
  using Summary = std::uint64_t;
  static constexpr Summary kSeveralCalls = 0;

  [[nodiscard]] static Summary summary_of(const CallSignature& call) noexcept;
  /// Where the contributions of the first `nodes` end, and those of the next node begin, without a gap.
  [[nodiscard]] std::size_t end_of(int nodes) const noexcept {
    return sizeof(Summary) + members_[static_cast<std::size_t>(nodes)] * contribution_bytes_;
  }
  /// In each round a leader gets what as many nodes know as it sends of.
  [[nodiscard]] int nodes_that_leave() const noexcept {
    return std::min(distance_, leaders_.size() - distance_);
  }
  void start_round();
  void finish_round();
  void close_gap(int nodes);
  void merge(Summary arrived) noexcept;

  Lane leaders_;
  std::size_t capacity_;
  /// A summary, and the contributions of this node and those after it. Those that came last have theirs
  /// before them.
  Wire::Scratch scratch_;
  std::vector<std::size_t> members_;  ///< on the first k nodes, own node first, then the nodes after it
  Summary summary_ = kSeveralCalls;
  std::size_t contribution_bytes_ = 0;
  int nodes_before_gap_ = 1;

  // of the round under way
  int distance_ = 1;  ///< to the leader that is heard
  Transfer sending_;
  Transfer receiving_;
};

/// What the members of one node have called.
struct NodeCalls {
  CallSignature signature = {};            ///< of all its members, or, where they differ, of its leader
  std::vector<MemberCall> by_member = {};  ///< only where they differ: of members that described their call
  CallWords words = {};                    ///< what its leader's call is for
};

/// After a roll call in which the calls of some members differed, the leaders report to each other what the
/// members of their nodes have called, so that every leader names the same odd one. All leaders know of the
/// difference, so all of them take part. The pattern is again that of [Bruck et al. 1997]. Cost
/// ceil(log2 p) alpha + (p-1) n beta.
class CallReport {
 public:
  /// `leaders` is the lane of the leaders, lane 0; `own` is of this node.
  CallReport(Lane leaders, const Topology& topology, const NodeCalls& own);

  /// The exchange; once. It is given up after five seconds.
  [[nodiscard]] Task<> execute();

  /// Afterwards: the error that ends the call `name` on all members; the same on all leaders.
  [[nodiscard]] Error disagreement(const std::string& name, std::span<const MemberInfo> members) const;

 private:
  struct Header;
  struct Signed;
  [[nodiscard]] Header header_of(std::size_t entry) const;
  [[nodiscard]] std::string_view words_of(std::size_t entry) const;
  [[nodiscard]] std::vector<CallWords> words_by_rank() const;
  void find_entries();

  Lane leaders_;
  const Topology& topology_;
  std::size_t capacity_;
  Wire::Scratch scratch_;
  std::vector<std::size_t> begins_;  ///< of the entries, own node first, then the nodes after it
  std::size_t end_ = 0;
};

}  // namespace cohort::network
