// The members of a run, as the benchmark itself needs them: a barrier before each timed loop,
// and the combination of what the members have measured. Cohort does not take part in it, since
// it is what is measured. Every function is called by all members, each on a Team of its own. Ranks of MPI
// have the one of mpi_team.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace cohort::bench {

class Team {
 public:
  virtual ~Team() = default;

  virtual void barrier() const = 0;

  /// The same number on every member: that of member 0.
  [[nodiscard]] virtual int from_first(int value) const = 0;

  /// Replaces each value by the largest of all members. All pass as many values.
  virtual void take_maximum(std::span<double> values) const = 0;

  [[nodiscard]] virtual std::uint64_t sum(std::uint64_t value) const = 0;

  /// All members run on one node, so that their readings of std::chrono::steady_clock compare.
  [[nodiscard]] virtual bool shares_a_clock() const = 0;
};

/// The members of a run when they are threads of this process.
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
