// What follows from a call alone, before it is announced: how long it is, which kernel it uses, and the
// fingerprint by which members find out that they have called different things.
//
// A training step makes the same calls again and again, so the planner keeps its latest plan. The next call
// most often has the same one: then planning costs a few comparisons.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/reduction.h>

#include "collective/record/packed_call.h"
#include "control_block.h"

namespace cohort::node {

struct CallPlan {
  std::uint32_t fingerprint = 0;  ///< of what members must agree on
  CallDetails details = {};       ///< the same in full, for calls that the fingerprint has too few bits for
  bool payload_has_details = false;  ///< the fingerprint is not exact: the payload begins with the details
  std::size_t elements = 0;          ///< of a member's longest block
  std::size_t bytes = 0;             ///< that one member contributes
  bool in_line = false;              ///< the payload is the data, and the fingerprint exact
  ReductionKernel kernel = nullptr;  ///< of the kinds that reduce
  PackedCall packed = {};            ///< as the member's record has it, without the number
};

class CallPlanner {
 public:
  /// For the calls of one priority among so many members.
  CallPlanner(int members, Priority priority) noexcept : members_(members), priority_(priority) {}

  /// The plan is overwritten by the next call's.
  [[nodiscard]] const CallPlan& plan(const CollectiveCall& call) {
    const bool alike = call.elements == planned_.elements && call.kind == planned_.kind &&
                       call.dtype == planned_.dtype && call.op == planned_.op && call.root == planned_.root &&
                       call.layout == planned_.layout && call.counts.empty();
    if (!alike) make_plan(call);
    return plan_;
  }

 private:
  /// What tells the plans of two calls apart; calls with counts are planned each time.
  struct PlanKey {
    std::size_t elements = 0;
    std::uint64_t layout = 0;
    int root = -1;
    CollectiveKind kind = CollectiveKind::kBarrier;
    DType dtype = DType::kUInt8;
    ReduceOp op = ReduceOp::kSum;
  };

  void make_plan(const CollectiveCall& call);

  int members_;
  Priority priority_;
  PlanKey planned_;
  CallPlan plan_;
};

}  // namespace cohort::node
