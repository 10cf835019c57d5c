#include "sync_on_read_variable.h"

#include <cohort/collective/reduction.h>

#include "element_update.h"
#include "row_update.h"

namespace cohort {
namespace {

/// What global replica `replica` of `replicas` holds of a sum. Integers do not always divide: replica 0
/// has the remainder, so that nothing of the sum is lost.
Tensor share_of(const Tensor& sum, int replica, int replicas) {
  const Tensor share = sum.clone();
  visit_dtype(sum.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      throw InvalidArgument("bool values have no sum that could be divided among replicas");
    } else if constexpr (std::is_integral_v<T>) {
      // Divided in 64 bits, where every number of replicas can be represented.
      using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      for (T& value : share.span<T>()) {
        const auto whole = static_cast<Wide>(value);
        const auto count = static_cast<Wide>(replicas);
        value = static_cast<T>(replica == 0 ? whole / count + whole % count : whole / count);
      }
    } else {
      divide_elements(share.dtype(), share.data(), share.elements(), static_cast<std::size_t>(replicas));
    }
  });
  return share;
}

}  // namespace

SyncOnReadVariable::SyncOnReadVariable(VariableOptions options, std::shared_ptr<VariableOwner> owner,
                                       std::vector<Tensor> components)
    : VariableState(std::move(options), std::move(owner), std::move(components)) {}

Tensor SyncOnReadVariable::read_across() const {
  if (options().aggregation == VariableAggregation::kNone) {
    throw WrongContext(
        "read of variable '{}' outside replicas: it is ON_READ with aggregation none, so each replica has a "
        "value of its own and all of them together have none; read it inside run(), or choose an aggregation",
        options().name);
  }
  return strategy().aggregate_components(options().aggregation, components());
}

void SyncOnReadVariable::assign_in_replica(const ElementUpdate& update, const Tensor& value,
                                           int local_replica) const {
  update.apply(component(local_replica), value);
}

void SyncOnReadVariable::assign_across(const ElementUpdate& update, const Tensor& value) const {
  const bool is_sum = options().aggregation == VariableAggregation::kSum;
  if (is_sum && &update != &kAssign) {
    throw InvalidArgument(
        "{} of variable '{}' outside replicas: it is ON_READ with aggregation sum, and what to change in "
        "which replica's part is not known; use assign, or do it inside run()",
        update.name, options().name);
  }
  const Tensor stable = value.clone();  // it may be one of the components
  int id = strategy().first_replica_id();
  for (const Tensor& component : components())
    update.apply(component, is_sum ? share_of(stable, id++, strategy().num_replicas_in_sync()) : stable);
  if (options().aggregation == VariableAggregation::kNone) {
    throw WrongContext(
        "{} of variable '{}' outside replicas: every component was written, but the variable is ON_READ "
        "with aggregation none and has no value to return; use extended().update",
        update.name, options().name);
  }
}

void SyncOnReadVariable::require_scatter(const RowUpdate& update) const {
  throw Unimplemented("{} of variable '{}': ON_READ variables have no updates of rows; use assign",
                      update.name, options().name);
}

// Never called: `require_scatter` has thrown.
void SyncOnReadVariable::scatter_in_replica(const RowUpdate& update, const IndexedSlices& /*rows*/,
                                            int /*local_replica*/) const {
  require_scatter(update);
}
void SyncOnReadVariable::scatter_across(const RowUpdate& update, const IndexedSlices& /*rows*/) const {
  require_scatter(update);
}

}  // namespace cohort
