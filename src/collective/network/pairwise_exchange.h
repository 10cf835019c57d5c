// The members' part of a call in which each sends blocks to one other node after another, and receives from
// one after another. If long blocks left for all nodes at once, those of many would meet before each
// receiver: queues overflow there, and TCP waits for what was lost. So a message leaves only once an earlier
// one has come.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include <cohort/collective/task.h>

#include "stream.h"
#include "wire.h"

namespace cohort::network {

class PairwiseExchange {
 public:
  /// `longest`: bytes of the longest block that any two members exchange.
  PairwiseExchange(Wire& wire, int tag, std::size_t longest);

  /// What this member sends and receives in its next step. All members take as many, and what one of them
  /// sends in a step the other one receives in the same step.
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

  [[nodiscard]] std::size_t parts() const noexcept { return steps_.size() * parts_per_step_; }
  /// How many parts are in flight at most, of those that leave as of those that are awaited.
  [[nodiscard]] std::size_t in_flight() const noexcept;
  [[nodiscard]] Transfers start_sending(std::size_t part);
  [[nodiscard]] Transfers start_receiving(std::size_t part);

  Wire& wire_;
  int tag_;
  std::size_t part_bytes_;  ///< of a block, as long as a message
  std::size_t parts_per_step_;
  std::vector<Step> steps_;
  std::size_t most_blocks_ = 1;  ///< that leave in a step
  std::size_t come_ = 0;         ///< parts, from the first on
};

}  // namespace cohort::network
