// The members of a run when they are threads of this process.
#pragma once

#include <functional>
#include <memory>

#include "team.h"

namespace cohort::bench {

class ThreadTeam final : public Team {
 public:
  /// What the members of one team share.
  class Shared;

  ThreadTeam(std::shared_ptr<Shared> shared, int member);

  void barrier() const override;
  [[nodiscard]] int from_first(int value) const override;
  void take_maximum(std::span<double> values) const override;
  [[nodiscard]] std::uint64_t sum(std::uint64_t value) const override;
  [[nodiscard]] bool shares_a_clock() const override { return true; }

 private:
  std::shared_ptr<Shared> shared_;
  int member_;
};

/// Calls `body(member, team)` on a thread for each member, each bound to one of the cores that this
/// process may use, and returns when all have returned. An exception in one of them ends the
/// process, since the others would wait for it: `body` reports its errors itself.
void run_thread_team(int members, const std::function<void(int member, const Team& team)>& body);

}  // namespace cohort::bench
