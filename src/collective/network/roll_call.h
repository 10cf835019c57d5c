// Before data moves between nodes, the leaders tell each other what the members of their
// nodes have called; small contributions piggyback on this exchange, and then nothing
// else needs to move. The pattern is the same whatever is called, so that members that
// disagree meet all the same, and each leader learns which members differ.
//
// Dissemination, as in the all-gather of [Bruck et al. 1997]: in round k a leader passes
// what it knows to the one 2^k before it. Cost  ceil(log2 p) alpha + (p-1) n beta.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>

#include "lane.h"
#include "topology.h"

namespace cohort::network {

/// What the members of one node have called.
struct NodeCalls {
  CallSignature signature;            ///< of all its members, or, where they differ, of its leader
  std::vector<MemberCall> by_member;  ///< only where they differ: of members that described their call
  CallWords words = {};               ///< what its leader's call is for; for a roll call of words
};

class RollCall {
 public:
  /// `leaders` is the lane of the leaders, lane 0; `piggyback_bytes` bounds all payloads together.
  RollCall(Lane leaders, const Topology& topology, std::size_t piggyback_bytes);

  /// This node's answer. Returns where to put the payload, if there is one.
  std::byte* answer(const NodeCalls& own, std::size_t payload_bytes);

  /// The exchange; once.
  [[nodiscard]] Task<> execute();

  /// The same for another roll call, of words, after one that was not unanimous: all leaders know that, and
  /// hold it. It is given up after half a second.
  void answer_in_words(const NodeCalls& own);
  [[nodiscard]] Task<> execute_in_words();

  /// Afterwards: the payload of a node.
  [[nodiscard]] std::span<const std::byte> payload_of(int node) const;

  /// Whether all members have called the same.
  [[nodiscard]] bool is_unanimous() const;
  /// The error that ends the call on all members if they have not; the same on all leaders. `words` is the
  /// roll call of words.
  [[nodiscard]] Error disagreement(const std::string& name, std::span<const MemberInfo> members,
                                   const RollCall& words) const;

  /// How much room the words of one node have in it.
  static constexpr std::size_t kWordsBytes = 2048;

 private:
  struct Header;
  struct Signed;
  [[nodiscard]] Header header_of(std::size_t entry) const;
  [[nodiscard]] Task<> exchange(Deadline deadline);
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
