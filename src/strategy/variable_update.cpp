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
      "update of plain variable '{}' by {}: it has no component per replica; "
      "make the variable inside scope()",
      variable.name(), strategy_name());
}

bool StrategyExtended::keeps_equal(const Variable& variable) const noexcept {
  return variable_placement() == VariablePlacement::kMirrored &&
         variable.synchronization() == VariableSynchronization::kOnWrite &&
         variable.aggregation() != VariableAggregation::kNone;
}

void StrategyExtended::update_component(int component, Device device,
                                        const std::function<void(int component)>& body) {
  if (is_default())
    return body(component);  // which leaves the context as it is: the caller is the only replica
  const ContextScope scope({ContextKind::kUpdate, this, nullptr, component, device});
  body(component);
}

void StrategyExtended::update_components(const Variable& variable,
                                         const std::function<void(int component)>& body) {
  int number = 0;
  for (const Tensor& component : variable.components()) update_component(number++, component.device(), body);
}

void StrategyExtended::update_components(std::span<const Device> devices,
                                         const std::function<void(int component)>& body) {
  require_cross_replica("update");
  for (const Device device : devices) {
    const auto place = std::ranges::find(parameter_devices_, device);
    if (place == parameter_devices_.end()) {
      throw InvalidArgument("update on {}: {} keeps no variables there", to_string(device), strategy_name());
    }
    update_component(static_cast<int>(place - parameter_devices_.begin()), device, body);
  }
}

}  // namespace cohort
