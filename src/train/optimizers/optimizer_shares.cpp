#include "optimizer_shares.h"

#include <algorithm>
#include <utility>

#include <cohort/base/fingerprint.h>

namespace cohort {
namespace {

constexpr std::uint64_t kAppliesInShares = fingerprint_of("apply_gradients in shares");

/// A component on each replica's device is what shares are gathered into.
void require_mirrored(const Variable& variable) {
  const VariableOwner* owner = variable.state()->owner();
  if (owner == nullptr) {
    if (get_strategy().num_replicas_in_sync() == 1) return;
    throw InvalidArgument(
        "ShardedOptimizer: variable '{}' belongs to no strategy; make it in the scope of the strategy",
        variable.name());
  }
  const bool has_one_copy = owner->variable_placement() != VariablePlacement::kMirrored;
  if (has_one_copy && (owner->num_replicas_in_sync() > 1 || variable.state()->is_kept_elsewhere())) {
    throw Unimplemented(
        "ShardedOptimizer: variable '{}' is kept in one copy under {}; use the optimizer itself, or a "
        "strategy that "
        "mirrors variables",
        variable.name(), owner->strategy_name());
  }
  if (variable.synchronization() == VariableSynchronization::kOnRead) {
    throw InvalidArgument(
        "ShardedOptimizer: variable '{}' is ON_READ, each replica has its own; it cannot be updated in "
        "shares",
        variable.name());
  }
  if (strategy_of(variable)->has_own_cross_device_ops()) {
    throw Unimplemented(
        "ShardedOptimizer: the program's cross-device operations for {} have none that scatters sums; use "
        "the "
        "optimizer itself",
        owner->strategy_name());
  }
}

/// The order of a plan: that in which the variables were made, the same on all workers.
std::vector<Variable> in_order_of_making(std::vector<Variable> variables) {
  std::ranges::stable_sort(variables, {},
                           [](const Variable& variable) { return variable.state()->number(); });
  return variables;
}

}  // namespace

StrategyExtended* strategy_of(const Variable& variable) {
  return static_cast<StrategyExtended*>(variable.state()->owner());  // only strategies own variables
}

std::string names_of(const std::vector<Variable>& variables) {
  std::string names;
  for (const Variable& variable : variables) names += (names.empty() ? "" : ", ") + variable.name();
  return names;
}

std::size_t ShardedOptimizer::Shares::place_of(const Variable& variable) const {
  const auto found = std::ranges::find(variables, variable);
  if (found != variables.end()) return static_cast<std::size_t>(found - variables.begin());
  throw InvalidArgument(
      "ShardedOptimizer: variable '{}' is not one of those that the replicas share, which are {}; give "
      "all variables in the first step, or to make_slots or the checkpoint before it",
      variable.name(), names_of(variables));
}

void ShardedOptimizer::Shares::begin(std::vector<Variable> all) {
  for (const Variable& variable : all) require_mirrored(variable);
  if (plan != nullptr) {
    for (const Variable& variable : all) static_cast<void>(place_of(variable));
    return;
  }
  variables = in_order_of_making(std::move(all));
  std::vector<TensorSpec> specs;
  Fingerprint numbers;
  numbers.add(kAppliesInShares);
  for (const Variable& variable : variables) {
    specs.push_back({variable.shape(), variable.dtype()});
    numbers.add(variable.state()->number());
  }
  fingerprint = numbers.value();
  const StrategyExtended* strategy = variables.empty() ? nullptr : strategy_of(variables.front());
  plan = std::make_shared<const SharePlan>(specs, strategy == nullptr ? 1 : strategy->num_replicas_in_sync());
}

OptimizerShare& ShardedOptimizer::Shares::share_of(int local_replica, const SlotKindsOf& slots) {
  std::unique_ptr<OptimizerShare>& share = by_replica[local_replica];
  if (share != nullptr) return *share;
  const auto component = static_cast<std::size_t>(std::max(local_replica, 0));
  std::vector<Tensor> values;
  for (const Variable& variable : variables) values.push_back(variable.components()[component]);
  const StrategyExtended* strategy = variables.empty() ? nullptr : strategy_of(variables.front());
  const int first = strategy == nullptr ? 0 : strategy->first_replica_id();
  share = std::make_unique<OptimizerShare>(plan, values, first + static_cast<int>(component), slots);
  return *share;
}

const std::vector<std::size_t>& ShardedOptimizer::Shares::places_of(
    int local_replica, const std::vector<GradientAndVariable>& gradients) {
  Order& order = orders[local_replica];
  const auto is_state_of = [](const std::shared_ptr<VariableState>& state, const GradientAndVariable& pair) {
    return state == pair.variable.state();
  };
  if (std::ranges::equal(order.list, gradients, is_state_of) && !order.list.empty()) return order.places;
  order = {};
  for (const GradientAndVariable& pair : gradients) {
    order.places.push_back(place_of(pair.variable));
    order.list.push_back(pair.variable.state());
  }
  std::vector<std::size_t> sorted = order.places;
  std::ranges::sort(sorted);
  const bool is_each_once = std::ranges::adjacent_find(sorted) == sorted.end();
  if (is_each_once && sorted.size() == variables.size()) return order.places;
  order = {};
  throw InvalidArgument(
      "ShardedOptimizer: a step has {} gradients, but the replicas share {} variables: {}; give one "
      "gradient of each in every step",
      gradients.size(), variables.size(), names_of(variables));
}

}  // namespace cohort
