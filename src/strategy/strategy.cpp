#include <cohort/strategy/strategy.h>

namespace cohort {
namespace {

thread_local std::optional<StrategyScope> scope_of_set_strategy;

}  // namespace

StrategyScope::StrategyScope(StrategyExtended& extended) : extended_(extended.shared_from_this()) {
  const ContextMode& mode = current_mode();
  if (extended.is_default()) {
    if (mode.strategy == nullptr) return;
    throw WrongContext("the scope of the default strategy must not nest inside the scope of {}",
                       mode.strategy->strategy_name());
  }
  extended.require_cross_replica("scope");
  scope_.emplace(ContextMode::cross_replica(&extended));
}

Strategy get_strategy() {
  VariableOwner* active = current_mode().strategy;
  if (active == nullptr) return Strategy(StrategyExtended::default_strategy());
  // Only strategies enter contexts, so the owner is one.
  return Strategy(static_cast<StrategyExtended*>(active)->shared_from_this());
}

void set_strategy(const std::optional<Strategy>& strategy) {
  const bool is_outermost =
      scope_of_set_strategy ? scope_of_set_strategy->is_innermost() : is_outside_scopes();
  if (!is_outermost || VariableCreatorScope::innermost() != nullptr) {
    throw WrongContext(
        "set_strategy was called inside a scope, which would end in another strategy than it began in; call "
        "it where no scope of a strategy, device or variable creator is open, and outside of run()");
  }
  scope_of_set_strategy.reset();
  if (strategy && !strategy->extended().is_default()) scope_of_set_strategy.emplace(strategy->extended());
}

bool has_strategy() { return current_mode().strategy != nullptr; }

ReplicaContext* get_replica_context() {
  const ContextMode& mode = current_mode();
  return mode.kind == ContextKind::kDefault ? &ReplicaContext::default_replica() : mode.replica;
}

bool in_cross_replica_context() {
  const ContextKind kind = current_mode().kind;
  return kind == ContextKind::kCrossReplica || kind == ContextKind::kUpdate;
}

std::optional<int> get_update_replica_id() {
  const ContextMode& mode = current_mode();
  return mode.kind == ContextKind::kUpdate ? std::optional(mode.local_replica) : std::nullopt;
}

}  // namespace cohort
