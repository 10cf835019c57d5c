#include <cohort/strategy/variable_update.h>

namespace cohort {

void StrategyExtended::require_updatable(const Variable& variable) const {
  require_cross_replica("update");
  const VariableOwner* owner = variable.state()->owner();
  if (owner == this) return;
  if (owner != nullptr) {
    throw WrongContext("update of variable '{}', which belongs to {}, by {}: mixing different strategies",
                       variable.name(), owner->strategy_name(), strategy_name());
  }
  if (variable_placement() == VariablePlacement::kSingleCopy) return;
  throw InvalidArgument(
      "update of plain variable '{}' by {}: it has no component per replica; make the variable inside "
      "scope()",
      variable.name(), strategy_name());
}

bool StrategyExtended::keeps_equal(const Variable& variable) const noexcept {
  return variable_placement() == VariablePlacement::kMirrored &&
         variable.synchronization() == VariableSynchronization::kOnWrite &&
         variable.aggregation() != VariableAggregation::kNone;
}

void StrategyExtended::update_components(std::span<const Device> devices,
                                         const std::function<void(int component)>& body) {
  require_cross_replica("update");
  for (const Device device : devices) {
    const auto place = std::ranges::find(parameter_devices_, device);
    if (place == parameter_devices_.end()) {
      throw InvalidArgument("update on {}: {} keeps no variables there", to_string(device), strategy_name());
    }
    const auto component = static_cast<int>(place - parameter_devices_.begin());
    if (is_default()) {  // which leaves the context as it is: the caller is the only replica
      body(component);
      continue;
    }
    const ContextScope scope({ContextKind::kUpdate, this, nullptr, component, device});
    body(component);
  }
}

}  // namespace cohort
