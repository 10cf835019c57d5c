// Random programs, carried out by the model and by the library, and compared value by value and error by
// error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <cohort/strategy/strategy.h>

#include "step.h"

namespace cohort::model {

struct Observed {
  std::string error = {};  ///< its code; empty: none
  std::string message = {};
  std::vector<Leaves> values = {};  ///< by local replica, or one for all
};

/// Carries out steps with the library, in this process's part of a layout.
class Execution {
 public:
  explicit Execution(Strategy strategy) : strategy_(std::move(strategy)) {}

  [[nodiscard]] Observed apply(const Step& step);

  /// The components of a variable on this worker.
  [[nodiscard]] Leaves components(std::size_t variable) const;
  [[nodiscard]] std::size_t variables() const { return variables_.size(); }

 private:
  [[nodiscard]] std::vector<Leaves> run(const Step& step);
  std::vector<Leaves> make(const Step& step);
  void change(const Step& step) const;
  [[nodiscard]] std::vector<Leaves> read(const Step& step) const;
  [[nodiscard]] std::vector<Leaves> reduce(const Step& step) const;
  [[nodiscard]] std::vector<Leaves> gather(const Step& step) const;
  [[nodiscard]] std::vector<Leaves> in_replicas(const Step& step) const;
  [[nodiscard]] std::vector<Leaves> ask(const Step& step) const;

  /// Calls `function` once, in a context that is not a replica or an update; in a replica, every replica
  /// calls it.
  void at(Place place, const std::function<void()>& function) const;

  /// A PerReplica of `build(leaves)` of this worker's replicas.
  template <class Build>
  [[nodiscard]] auto each(const Step& step, Build build) const;

  /// The results of `function(replica, its leaves)`, of this worker's replicas.
  template <class Function>
  [[nodiscard]] std::vector<Leaves> by_replica(const Step& step, Function function) const;

  [[nodiscard]] std::size_t first() const {
    return static_cast<std::size_t>(strategy_.extended().first_replica_id());
  }
  [[nodiscard]] const Variable& variable(const Step& step) const {
    return variables_.at(static_cast<std::size_t>(step.variable));
  }

  Strategy strategy_;
  std::vector<Variable> variables_;
};

/// What a run of programs needs to know of its processes.
struct Stage {
  Layout layout;
  std::function<Strategy()> make_strategy;  ///< collective over the workers

  /// Whether this is so on any worker. Collective.
  std::function<bool(bool)> on_any_worker = [](bool here) { return here; };
};

/// The seed of the first program: MODEL_SEED where that is set, for a replay, and else a new one.
[[nodiscard]] std::uint64_t seed_of_run();

/// How many programs to play: MODEL_PROGRAMS, or `usual`.
[[nodiscard]] int programs_of_run(int usual);

/// Plays programs with the seeds `seed`, `seed + 1`, ...; reports through GoogleTest where library and model
/// differ, and stops there.
void play(const Stage& stage, std::uint64_t seed, int programs);

}  // namespace cohort::model
