// A member's part of a call in which it sends a block to one other node after another, and receives from one
// after another. If long blocks left for all nodes at once, those of many would meet before each receiver:
// queues overflow there, and TCP waits for what was lost. So a member sends its next message only once it has
// received one of a few before it; a member that receives less than it sends is held back less.
//
// The thread that drives the member's call uses it. Buffers are the caller's, and they and the wire outlive
// it. Who is missing comes out as in any call between nodes: see failure_detector.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include <cohort/collective/algorithm.h>
#include <cohort/collective/task.h>

#include "lane.h"

namespace cohort::network {

/// What the members exchange, as all of them know it.
struct PairwiseShape {
  int nodes;
  std::size_t blocks;   ///< that a member sends in a step
  std::size_t longest;  ///< bytes of the longest block
};

/// Of messages of each block of a step.
struct PairwiseWindow {
  std::size_t ahead;      ///< that a member may have sent beyond what it has received
  std::size_t in_flight;  ///< that it has started to send and, likewise, to receive
};
/// As many as it takes to keep the network busy.
[[nodiscard]] PairwiseWindow window_of(const PairwiseShape& shape, std::size_t message_bytes,
                                       const CostConstants& network);

class PairwiseExchange {
 public:
  /// `timeout`: of the call. Where one node is slow, all wait for each other's steps; then a message leaves
  /// from time to time all the same, so that a long call is not taken for a standstill.
  PairwiseExchange(Wire& wire, int tag, const PairwiseShape& shape, const CostConstants& network,
                   std::chrono::duration<double> timeout);

  // Its tasks refer to it.
  PairwiseExchange(const PairwiseExchange&) = delete;
  PairwiseExchange& operator=(const PairwiseExchange&) = delete;

  /// What this member sends and receives in its next step. What one member sends in a step the other one
  /// receives in the same step.
  void add_step(std::vector<Leaving> leaving, std::vector<Arriving> arriving);

  /// All steps. Both go on side by side: sending waits for what has been received.
  [[nodiscard]] Task<> send();
  [[nodiscard]] Task<> receive();

  /// Until all that this member receives up to this step has come.
  [[nodiscard]] Task<> arrival(std::size_t step) const;

 private:
  using Transfers = std::vector<Transfer>;
  struct Step {
    std::vector<Leaving> leaving;
    std::vector<Arriving> arriving;
  };

  // A round is a message of each block of a step.
  [[nodiscard]] std::size_t rounds() const noexcept { return steps_.size() * rounds_per_step_; }
  /// `start_message(block, offset, bytes)` starts a block's message of that round.
  template <class Block, class Start>
  [[nodiscard]] Transfers start(std::size_t round, std::vector<Block> Step::*blocks, Start start_message);

  Wire& wire_;
  int tag_;
  std::size_t message_bytes_;
  std::size_t rounds_per_step_;
  PairwiseWindow window_;
  std::chrono::duration<double> pause_;  ///< after which a message leaves although nothing has come
  std::vector<Step> steps_;
  std::size_t rounds_received_ = 0;
};

}  // namespace cohort::network
