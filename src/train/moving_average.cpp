#include <cohort/train/moving_average.h>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/strategy/strategy.h>

namespace cohort {
namespace {

void require_fit(const Variable& variable, const Tensor& value, double decay) {
  if (!(decay >= 0 && decay <= 1))  // also for NaN
    throw InvalidArgument("moving average of variable '{}': the decay is {}; give 0 to 1", variable.name(),
                          decay);
  const VariableOwner* owner = variable.state()->owner();
  const bool has_parts = owner != nullptr && owner->variable_placement() == VariablePlacement::kMirrored &&
                         variable.synchronization() == VariableSynchronization::kOnRead;
  if (has_parts && variable.aggregation() == VariableAggregation::kSum) {
    throw InvalidArgument(
        "moving average of variable '{}': a read gives the sum of its replicas' parts, which is no average; "
        "give it the aggregation mean",
        variable.name());
  }
  if (is_floating(variable.dtype()) && value.shape() == variable.shape()) return;
  throw InvalidArgument(
      "moving average of variable '{}' of {}: it cannot follow {}; "
      "give a floating variable the shape of its value",
      variable.name(), describe(variable.components().front()), describe(value));
}

Tensor averaged(const Tensor& average, const Tensor& value, double decay) {
  const Tensor wide_average = average.on_host().cast(DType::kFloat64);
  const Tensor wide_value = value.on_host().cast(DType::kFloat64);
  const Tensor result = Tensor::uninitialized(average.shape(), DType::kFloat64);
  const std::span<const double> averages = wide_average.span<double>();
  const std::span<const double> values = wide_value.span<double>();
  const std::span<double> sums = result.span<double>();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = averages[i] * decay + values[i] * (1 - decay);
  return result.cast(average.dtype()).to(average.device());
}

/// The mean of the replicas' values, which they pass for the same variable.
Tensor mean_for(const ReplicaContext& replica, const Variable& variable, const Tensor& value) {
  // Every thread outside a scope runs the default replica, but a communicator is for one thread at a time.
  if (replica.num_replicas_in_sync() == 1) return replica.all_reduce(ReduceOp::kMean, value);
  static constexpr std::uint64_t kMovingAverage = fingerprint_of("assign_moving_average");
  const std::uint64_t number = variable.state()->number();
  PurposeOf purpose(Fingerprint().add(kMovingAverage).add(number).value(), Caller::kReplica, replica.device(),
                    [&] {
                      return PurposeWords{"assigns the moving average " + variable.name(),
                                          fmt::format("variable number {}", number)};
                    });
  const CommunicationScope scope(replica.communicator(), {}, purpose);
  return replica.all_reduce(ReduceOp::kMean, value);
}

}  // namespace

void assign_moving_average(const Variable& variable, const Tensor& value, double decay) {
  const auto follow = [decay](const Variable& followed, const Tensor& mean) {
    followed.assign(averaged(followed.read(), mean, decay));
  };
  const ContextKind context = current_mode().kind;
  // An assignment would aggregate once more, and a read outside replicas, too; an update sees the component
  // alone.
  if (context == ContextKind::kReplica) {
    const ReplicaContext& replica = *get_replica_context();
    replica.or_abort_replicas([&] { require_fit(variable, value, decay); });
    replica.strategy().extended().update(variable, follow, mean_for(replica, variable, value));
    return;
  }
  require_fit(variable, value, decay);
  VariableOwner* const owner = variable.state()->owner();
  if (owner == nullptr || context == ContextKind::kUpdate) return follow(variable, value);
  // Outside any scope the variable's own strategy is meant; only strategies own variables.
  if (context == ContextKind::kDefault)
    static_cast<StrategyExtended*>(owner)->update(variable, follow, value);
  else
    get_strategy().extended().update(variable, follow, value);
}

}  // namespace cohort
