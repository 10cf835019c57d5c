// The members of a run, as the benchmark itself needs them: a barrier before each timed loop,
// and the combination of what the members have measured. Cohort does not take part in it, since
// it is what is measured. Every function is called by all members, each on a Team of its own.
#pragma once

#include <cstdint>
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

}  // namespace cohort::bench
