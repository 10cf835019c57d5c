#include "variable_kinds.h"

#include <algorithm>
#include <functional>
#include <typeindex>

#include <cohort/value/detail/variable_owner.h>

#include "collective/kernels/reduce_tensors.h"
#include "device/device_runtime.h"
#include "device/rules/arithmetic.h"

namespace cohort {
namespace {

template <class Operator>
void combine_with(const Tensor& component, const Tensor& value) {
  visit_dtype(component.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      throw InvalidArgument("bool variables cannot be added to; use assign");
    } else if (!is_cpu(component)) {
      runtime_of(component.device()).combine(Operator::kName, component, value.to(component.device()));
    } else {
      const Tensor readable = value.on_host();
      const std::span<T> target = component.span<T>();
      const std::span<const T> source = readable.span<T>();
      for (std::size_t i = 0; i < target.size(); ++i) target[i] = combine<Operator>(target[i], source[i]);
    }
  });
}

void overwrite(const Tensor& component, const Tensor& value) { component.copy_from(value); }

}  // namespace

const ElementUpdate kAssign{"assign", overwrite};
const ElementUpdate kAssignAdd{"assign_add", combine_with<Add>};
const ElementUpdate kAssignSub{"assign_sub", combine_with<Subtract>};

namespace {

template <class Operator, class T>
void require_computable(std::span<const T> values) {
  if constexpr (std::is_same_v<T, bool> && !std::is_same_v<Operator, Replace>)
    throw InvalidArgument("rows of bool variables take no arithmetic; use scatter_update");
  if constexpr (std::is_integral_v<T> && std::is_same_v<Operator, Divide>) {
    if (std::ranges::find(values, T{0}) != values.end())
      throw InvalidArgument("scatter_div: a row holds the integer 0; integers cannot be divided by it");
  }
}

/// Whether the values must be checked, not only their dtype.
template <class Operator>
bool depends_on_values(DType dtype) {
  return std::is_same_v<Operator, Divide> && !is_floating(dtype);
}

template <class Operator>
void combine_rows_on_device(const Tensor& component, const IndexedSlices& rows) {
  visit_dtype(component.dtype(), [&]<class T>(std::type_identity<T>) {
    const Tensor readable = depends_on_values<Operator>(component.dtype()) ? rows.values.on_host()
                                                                           : Tensor::zeros({0}, kDTypeOf<T>);
    require_computable<Operator>(std::span<const T>(readable.span<T>()));
  });
  const Device device = component.device();
  runtime_of(device).combine_rows(Operator::kName, component, rows.indices.to(device),
                                  rows.values.to(device));
}

template <class Operator>
void combine_rows(const Tensor& component, const IndexedSlices& rows) {
  if (!is_cpu(component)) return combine_rows_on_device<Operator>(component, rows);
  const Tensor indices = rows.indices.on_host().cast(DType::kInt64);
  const Tensor readable = rows.values.on_host();
  visit_dtype(component.dtype(), [&]<class T>(std::type_identity<T>) {
    const std::span<const T> values = readable.span<T>();
    require_computable<Operator>(values);
    const std::size_t width = component.shape().row().elements();
    for (std::size_t i = 0; i < indices.elements(); ++i) {
      const auto row = static_cast<std::size_t>(indices.span<std::int64_t>()[i]);
      const std::span<T> target = component.span<T>().subspan(row * width, width);
      const std::span<const T> source = values.subspan(i * width, width);
      for (std::size_t j = 0; j < width; ++j) target[j] = combine<Operator>(target[j], source[j]);
    }
  });
}

}  // namespace

const RowUpdate kScatterAdd{"scatter_add", combine_rows<Add>, true};
const RowUpdate kScatterSub{"scatter_sub", combine_rows<Subtract>, true};
const RowUpdate kScatterMul{"scatter_mul", combine_rows<Multiply>, true};
const RowUpdate kScatterDiv{"scatter_div", combine_rows<Divide>, true};
const RowUpdate kScatterMin{"scatter_min", combine_rows<Minimum>, false};
const RowUpdate kScatterMax{"scatter_max", combine_rows<Maximum>, false};
const RowUpdate kScatterUpdate{"scatter_update", combine_rows<Replace>, false};

void MirroredVariable::assign_in_replica(const ElementUpdate& update, const Tensor& value,
                                         int local_replica) const {
  const VariableAggregation aggregation = options().aggregation;
  const Tensor& own = component(local_replica);
  if (aggregation == VariableAggregation::kNone) return update.apply(own, value);
  VariablePurpose purpose(update.operation, *this, own.device());
  update.apply(own, strategy().aggregate(aggregation, value, local_replica, purpose));
}

void MirroredVariable::scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                                          int local_replica) const {
  const VariableAggregation aggregation = options().aggregation;
  const Tensor& own = component(local_replica);
  if (aggregation == VariableAggregation::kNone) return update.apply(own, rows);
  VariablePurpose purpose(update.operation, *this, own.device());
  update.apply(own, strategy().aggregate_rows(aggregation, rows, local_replica, purpose));
}

void MirroredVariable::require_scatter(const RowUpdate& update) const {
  const VariableAggregation aggregation = options().aggregation;
  if (update.aggregates || aggregation == VariableAggregation::kNone ||
      aggregation == VariableAggregation::kOnlyFirstReplica) {
    return;
  }
  throw Unimplemented(
      "{} of variable '{}' with aggregation {}: the rows of several replicas can be combined only for add, "
      "sub, mul and div; use aggregation none or only_first_replica",
      update.operation.name, options().name, to_string(aggregation));
}

namespace {

/// The part of a sum that global replica `replica` of `replicas` holds. Integers do not always divide:
/// replica 0 has the remainder, so that nothing of the sum is lost.
Tensor share_of(const Tensor& sum, int replica, int replicas) {
  Tensor share = is_floating(sum.dtype()) ? sum.clone() : sum.on_host().clone();
  visit_dtype(sum.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      throw InvalidArgument("bool values have no sum that could be divided among replicas");
    } else if constexpr (std::is_integral_v<T>) {
      // Divided in 64 bits, where every number of replicas can be represented.
      using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      for (T& value : share.span<T>()) {
        const Wide whole{value};
        const auto count = static_cast<Wide>(replicas);
        value = static_cast<T>(replica == 0 ? whole / count + whole % count : whole / count);
      }
    } else {
      divide(share, static_cast<std::size_t>(replicas));
    }
  });
  return share;
}

}  // namespace

Tensor SyncOnReadVariable::read_across() const {
  if (options().aggregation == VariableAggregation::kNone) {
    throw WrongContext(
        "read of variable '{}' outside replicas: it is ON_READ with aggregation none, so each replica has "
        "its own value and there is no common one; read it inside run(), or choose an aggregation",
        options().name);
  }
  static constexpr VariableOperation kRead("read");
  VariablePurpose purpose(kRead, *this);
  return strategy().aggregate_components(options().aggregation, components(), purpose);
}

void SyncOnReadVariable::assign_across(const ElementUpdate& update, const Tensor& value) const {
  if (options().aggregation == VariableAggregation::kSum) return share_out(update, value);
  VariableState::assign_across(update, value);
  if (options().aggregation == VariableAggregation::kNone) {
    throw WrongContext(
        "{} of variable '{}' outside replicas: every component was written, but the variable is ON_READ "
        "with aggregation none and has no value to return; use extended().update",
        update.operation.name, options().name);
  }
}

void SyncOnReadVariable::share_out(const ElementUpdate& update, const Tensor& sum) const {
  if (&update != &kAssign) {
    throw InvalidArgument(
        "{} of variable '{}' outside replicas: it is ON_READ with aggregation sum, so it is not clear which "
        "replica's part should change; use assign, or do it inside run()",
        update.operation.name, options().name);
  }
  const Tensor stable = sum.clone();  // it may be one of the components
  int id = strategy().first_replica_id();
  for (const Tensor& component : components())
    component.copy_from(share_of(stable, id++, strategy().num_replicas_in_sync()));
}

void SyncOnReadVariable::require_scatter(const RowUpdate& update) const {
  throw Unimplemented("{} of variable '{}': ON_READ variables do not take updates of rows; use assign",
                      update.operation.name, options().name);
}

namespace {

/// Pauses all local replicas and calls `function` once, with the operands of all of them.
template <class Operand>
void meet(const VariableOperation& operation, const VariableState& variable, Operand mine,
          const std::function<void(std::span<const Operand>)>& function) {
  const auto merge = [&](std::span<void* const> by_replica) {
    std::vector<Operand> operands;
    for (void* const of_replica : by_replica) operands.push_back(*static_cast<const Operand*>(of_replica));
    function(operands);
    return std::shared_ptr<void>();
  };
  const ContextMode& mode = current_mode();
  const VariablePurpose purpose(operation, variable, mode.device.value_or(Device()));
  MergeRequest request{operation.name, typeid(mine), &mine, merge, purpose};
  static_cast<void>(mode.merge_point->meet(mode.local_replica, request));
}

Tensor aggregated(VariableAggregation aggregation, std::span<const Tensor> values) {
  const Tensor& first = values.front();
  if (aggregation == VariableAggregation::kOnlyFirstReplica) return first;
  return reduced(aggregation == VariableAggregation::kSum ? ReduceOp::kSum : ReduceOp::kMean, values);
}

}  // namespace

void AggregatingVariable::assign_in_replica(const ElementUpdate& update, const Tensor& value,
                                            int /*local_replica*/) const {
  const VariableAggregation aggregation = options().aggregation;
  if (aggregation == VariableAggregation::kNone) {
    throw InvalidArgument(
        "{} of variable '{}' inside run(): {} replicas share its single copy, so it must have an "
        "aggregation; choose sum, mean or only_first_replica",
        update.operation.name, options().name, strategy().local_replicas());
  }
  if (aggregation == VariableAggregation::kMean && !is_floating(value.dtype())) {
    throw InvalidArgument("{} of {} to variable '{}': the mean of integers is a fraction",
                          update.operation.name, describe(value), options().name);
  }
  if (aggregation == VariableAggregation::kSum) require_legal(ReduceOp::kSum, value.dtype());
  meet<Tensor>(update.operation, *this, value,
               [&](std::span<const Tensor> values) { write(update, aggregated(aggregation, values)); });
}

void AggregatingVariable::scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                                             int /*local_replica*/) const {
  meet<IndexedSlices>(update.operation, *this, rows, [&](std::span<const IndexedSlices> of_replicas) {
    for (const IndexedSlices& of_replica : of_replicas) write_rows(update, of_replica);
  });
}

void AggregatingVariable::write(const ElementUpdate& update, const Tensor& value) const {
  update.apply(component(0), value);
}

void AggregatingVariable::write_rows(const RowUpdate& update, const IndexedSlices& rows) const {
  update.apply(component(0), rows);
}

}  // namespace cohort
