#include <cohort/value/variable.h>

#include <cohort/value/context.h>

namespace cohort {
namespace {

template <bool kSubtract>
void add_to(const Tensor& component, const Tensor& value) {
  visit_dtype(component.dtype(), [&]<class T>(std::type_identity<T>) {
    const std::span<T> target = component.span<T>();
    const std::span<const T> source = value.span<T>();
    for (std::size_t i = 0; i < target.size(); ++i) {
      if constexpr (HalfElement<T>) {
        const auto other = static_cast<float>(source[i]);
        target[i] = T(static_cast<float>(target[i]) + (kSubtract ? -other : other));
      } else if constexpr (std::is_same_v<T, bool>) {
        throw InvalidArgument("bool variables cannot be added to; use assign");
      } else if constexpr (std::is_integral_v<T>) {
        using Unsigned = std::make_unsigned_t<T>;  // because integers wrap
        const auto a = static_cast<Unsigned>(target[i]);
        const auto b = static_cast<Unsigned>(source[i]);
        target[i] = static_cast<T>(static_cast<Unsigned>(kSubtract ? a - b : a + b));
      } else {
        target[i] += kSubtract ? -source[i] : source[i];
      }
    }
  });
}

void copy_to(const Tensor& component, const Tensor& value) { component.copy_from(value); }

Tensor initial_value(const VariableOptions& options) {
  if (!options.initial_value) return Tensor::zeros(options.shape, options.dtype);
  if (options.shape.rank() > 0 && options.shape != options.initial_value->shape()) {
    throw InvalidArgument("variable '{}': shape {} contradicts the initial value {}", options.name,
                          to_string(options.shape), describe(*options.initial_value));
  }
  return *options.initial_value;
}

}  // namespace

struct Variable::State {
  VariableOptions options;
  std::vector<Tensor> components;
  std::shared_ptr<VariableOwner> owner;  // null for a plain variable
};

std::string_view to_string(VariableAggregation aggregation) noexcept {
  switch (aggregation) {
    case VariableAggregation::kNone: return "none";
    case VariableAggregation::kSum: return "sum";
    case VariableAggregation::kMean: return "mean";
    case VariableAggregation::kOnlyFirstReplica: return "only_first_replica";
  }
  return "unknown";
}

Variable::Variable(VariableOptions options) : state_(std::make_shared<State>()) {
  const Tensor initial = initial_value(options);
  if (options.aggregation == VariableAggregation::kMean && !is_floating(initial.dtype())) {
    throw InvalidArgument("variable '{}' is {}: the mean aggregation needs a floating dtype", options.name,
                          to_string(initial.dtype()));
  }
  VariableOwner* owner = current_mode().strategy;
  options.initial_value.reset();  // the components hold it
  state_->options = std::move(options);
  if (owner == nullptr) {
    state_->components = {initial.clone()};
  } else {
    state_->components = owner->mirror(initial);
    state_->owner = owner->share();
  }
}

const std::string& Variable::name() const noexcept { return state_->options.name; }
const Shape& Variable::shape() const noexcept { return state_->components.front().shape(); }
DType Variable::dtype() const noexcept { return state_->components.front().dtype(); }
bool Variable::trainable() const noexcept { return state_->options.trainable; }
VariableAggregation Variable::aggregation() const noexcept { return state_->options.aggregation; }
std::span<const Tensor> Variable::components() const noexcept { return state_->components; }

void Variable::require_own_strategy(const char* what) const {
  const VariableOwner* active = current_mode().strategy;
  if (active == nullptr || state_->owner == nullptr || active == state_->owner.get()) return;
  throw WrongContext(
      "{} of variable '{}', which belongs to {}, while {} is active: mixing different strategies", what,
      name(), state_->owner->strategy_name(), active->strategy_name());
}

void Variable::require_one_writer(const char* what) const {
  const ContextMode& mode = current_mode();
  if (state_->owner != nullptr || mode.kind != ContextKind::kReplica || mode.strategy->components() == 1)
    return;
  throw WrongContext(
      "{} of plain variable '{}' by one of {} concurrent replicas; make the variable inside the scope "
      "of {}, so that each replica has a component",
      what, name(), mode.strategy->components(), mode.strategy->strategy_name());
}

const Tensor& Variable::replica_component() const {
  require_own_strategy("update");
  require_one_writer("update");
  const ContextMode& mode = current_mode();
  if (mode.kind != ContextKind::kReplica && state_->owner != nullptr) {
    throw WrongContext(
        "variable '{}' has one component per replica, and this code is not inside a replica; call it inside "
        "run()",
        name());
  }
  // A plain variable has a single component, which every replica of the process shares.
  const bool mirrored = mode.kind == ContextKind::kReplica && state_->owner != nullptr;
  return state_->components[mirrored ? static_cast<std::size_t>(mode.local_replica) : 0];
}

Tensor Variable::read() const {
  require_own_strategy("read");
  if (current_mode().kind == ContextKind::kReplica && state_->owner != nullptr) return replica_component();
  if (current_mode().kind == ContextKind::kReplica) return state_->components.front();
  return state_->components.front().clone();
}

void Variable::apply(Update update, const char* what, const Tensor& value) const {
  require_own_strategy(what);
  if (value.dtype() != dtype() || value.shape() != shape()) {
    throw InvalidArgument("{} of {} to variable '{}', which is {}{}: dtype and shape must agree", what,
                          describe(value), name(), to_string(dtype()), to_string(shape()));
  }
  const ContextMode& mode = current_mode();
  if (mode.kind != ContextKind::kReplica || state_->owner == nullptr) {
    require_one_writer(what);
    // The value may be one of the components, which the first update would change for the others.
    const Tensor stable = state_->components.size() > 1 ? value.clone() : value;
    for (const Tensor& component : state_->components) update(component, stable);
    return;
  }
  const Tensor& component = replica_component();
  if (aggregation() == VariableAggregation::kNone) return update(component, value);
  update(component, state_->owner->aggregate(aggregation(), value, mode.local_replica));
}

void Variable::assign(const Tensor& value) const { apply(copy_to, "assign", value); }
void Variable::assign_add(const Tensor& value) const { apply(add_to<false>, "assign_add", value); }
void Variable::assign_sub(const Tensor& value) const { apply(add_to<true>, "assign_sub", value); }

}  // namespace cohort
