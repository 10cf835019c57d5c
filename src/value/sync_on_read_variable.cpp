#include "sync_on_read_variable.h"

#include "collective/kernels/reduce_tensors.h"

#include "element_update.h"
#include "row_update.h"

namespace cohort {
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

}  // namespace cohort
