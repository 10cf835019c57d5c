// What the local replicas of a ShardedOptimizer have in common: which variables there are, and how these are
// spread over all replicas.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cohort/strategy/strategy.h>
#include <cohort/train/optimizers/sharded_optimizer.h>

#include "optimizer_share.h"

namespace cohort {

struct ShardedOptimizer::Shares {
  std::mutex mutex;  ///< guards the map and the plan while replicas begin; each replica uses its own share
  std::vector<Variable> variables;
  std::uint64_t fingerprint = 0;  ///< of these
  std::shared_ptr<const SharePlan> plan;
  std::map<int, std::unique_ptr<OptimizerShare>> by_replica;  ///< by local replica, -1 outside any scope

  /// Where the variables of a list are in the plan; by local replica too.
  struct Order {
    std::vector<std::shared_ptr<VariableState>> list;
    std::vector<std::size_t> places;
  };
  std::map<int, Order> orders;

  [[nodiscard]] std::size_t place_of(const Variable& variable) const;

  /// Plans the shares of these variables, or checks that the plan has them.
  void begin(std::vector<Variable> all);

  /// That of a local replica, which is made at first.
  OptimizerShare& share_of(int local_replica, const SlotKindsOf& slots);

  /// The places of the gradients' variables, each of which is there once.
  const std::vector<std::size_t>& places_of(int local_replica,
                                            const std::vector<GradientAndVariable>& gradients);
};

[[nodiscard]] StrategyExtended* strategy_of(const Variable& variable);
[[nodiscard]] std::string names_of(const std::vector<Variable>& variables);

}  // namespace cohort
