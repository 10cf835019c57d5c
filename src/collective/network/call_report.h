// After a roll call in which the calls of some members differed, the leaders report to each other what the
// members of their nodes have called, so that every leader names the same odd one. All leaders know of the
// difference, so all of them take part.
//
// Dissemination, as in the all-gather of [Bruck et al. 1997]: in round k a leader passes
// what it knows to the one 2^k before it. Cost  ceil(log2 p) alpha + (p-1) n beta.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>

#include "lane.h"
#include "topology.h"

namespace cohort::network {

/// What the members of one node have called.
struct NodeCalls {
  CallSignature signature = {};            ///< of all its members, or, where they differ, of its leader
  std::vector<MemberCall> by_member = {};  ///< only where they differ: of members that described their call
  CallWords words = {};                    ///< what its leader's call is for
};

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
