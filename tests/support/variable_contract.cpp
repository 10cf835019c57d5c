#include "worker_contracts.h"

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/value/variable.h>

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::SizeIs;

Variable variable_in(const Strategy& strategy, const VariableOptions& options) {
  const auto scope = strategy.scope();
  return Variable(options);
}

/// The values of this worker's components, of shape [].
std::vector<double> values_of(const Variable& variable) {
  std::vector<double> values;
  for (const Tensor& component : variable.components()) values.push_back(component.item<double>());
  return values;
}

/// `function(id)` in every replica, and of every replica of this worker as a list.
template <class Function>
void on_replicas(const Strategy& strategy, Function function) {
  strategy.run([&](ReplicaContext& replica) { function(replica.replica_id_in_sync_group()); });
}
template <class Function>
std::vector<double> of_replicas(const Strategy& strategy, Function function) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(strategy.extended().local_replicas()));
  for (int local = 0; local < strategy.extended().local_replicas(); ++local)
    values.push_back(function(strategy.extended().first_replica_id() + local));
  return values;
}

/// 1 + 2 + ... + n: what the replicas' numbers, counted from 1, add up to.
double sum_to(int n) { return n * (n + 1) / 2.0; }

}  // namespace

void check_creation(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const Variable in_scope =
      variable_in(strategy, {.name = "v", .initial_value = Tensor::scalar(worker.rank() + 5.0)});
  EXPECT_THAT(values_of(in_scope), AllOf(SizeIs(devices), Each(5))) << "the chief's value";
  EXPECT_EQ(in_scope.component_name(0), "v");
  const auto in_run = strategy.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    return Variable({.initial_value = Tensor::from({id + 1.0, id + 2.0})});
  });
  for (const Tensor& component : in_run[0].components())
    EXPECT_THAT(component.span<double>(), ElementsAre(1, 2)) << "replica 0's value";
  EXPECT_EQ(strategy.extended().should_checkpoint(), worker.rank() == 0);
  EXPECT_EQ(strategy.extended().should_save_summary(), worker.rank() == 0);
}

void check_on_write_variables(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  const auto assigned = [&](VariableAggregation aggregation) {
    const Variable variable =
        variable_in(strategy, {.initial_value = Tensor::scalar(10.0), .aggregation = aggregation});
    const auto seen = strategy.run([&](ReplicaContext& replica) {
      return variable.assign(replica.replica_id_in_sync_group() + 1.0).read().item<double>();
    });
    EXPECT_THAT(values_of(variable), ElementsAreArray(seen.components()));
    strategy.run([&] { variable.assign_add(1.0); });
    return values_of(variable);
  };
  EXPECT_EQ(assigned(VariableAggregation::kNone), of_replicas(strategy, [](int id) { return id + 2.0; }));
  EXPECT_THAT(assigned(VariableAggregation::kSum), Each(sum_to(replicas) + replicas));
  EXPECT_THAT(assigned(VariableAggregation::kMean), Each((replicas + 1) / 2.0 + 1));
  EXPECT_THAT(assigned(VariableAggregation::kOnlyFirstReplica), Each(2)) << "replica 0 of all workers";
}

void check_on_read_variables(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  const auto counted = [&](VariableAggregation aggregation) {
    Variable variable = variable_in(strategy, {.initial_value = Tensor::scalar(10.0),
                                               .synchronization = VariableSynchronization::kOnRead,
                                               .aggregation = aggregation});
    on_replicas(strategy, [&](int id) { variable.assign(id + 1.0); });
    EXPECT_EQ(values_of(variable), of_replicas(strategy, [](int id) { return id + 1.0; }));
    return variable;
  };
  const Variable sum = counted(VariableAggregation::kSum);
  EXPECT_EQ(sum.read().item<double>(), sum_to(replicas));
  EXPECT_EQ(sum.assign(6.0 * replicas).read().item<double>(), 6 * replicas);
  EXPECT_THAT(values_of(sum), Each(6)) << "each replica's share";
  const Variable mean = counted(VariableAggregation::kMean);
  EXPECT_DOUBLE_EQ(mean.read().item<double>(), (replicas + 1) / 2.0);
  EXPECT_EQ(mean.assign(6.0).assign_add(1.0).read().item<double>(), 7);
  EXPECT_EQ(counted(VariableAggregation::kOnlyFirstReplica).read().item<double>(), 1);
  EXPECT_THROW(static_cast<void>(counted(VariableAggregation::kNone).read()), WrongContext);

  const Variable integers = variable_in(strategy, {.dtype = DType::kInt32,
                                                   .synchronization = VariableSynchronization::kOnRead,
                                                   .aggregation = VariableAggregation::kSum});
  EXPECT_EQ(integers.assign(7).read().item<int>(), 7) << "the remainder is replica 0's";
}

void check_rows(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  const auto scattered = [&](VariableAggregation aggregation) {
    const Variable variable =
        variable_in(strategy, {.initial_value = Tensor::from({1.0, 2.0}), .aggregation = aggregation});
    on_replicas(strategy, [&](int id) {
      // Replica r names row 1 r+1 times.
      const Tensor values = Tensor::full({id + 1}, DType::kFloat64, replicas);
      variable.scatter_add({values, Tensor::full({id + 1}, DType::kInt32, 1), {2}});
    });
    std::vector<double> added;
    for (const Tensor& component : variable.components()) {
      EXPECT_EQ(component.span<double>()[0], 1);
      added.push_back(component.span<double>()[1] - 2);
    }
    return added;
  };
  EXPECT_EQ(scattered(VariableAggregation::kNone),
            of_replicas(strategy, [&](int id) { return replicas * (id + 1.0); }));
  EXPECT_THAT(scattered(VariableAggregation::kSum), Each(replicas * sum_to(replicas)));
  EXPECT_THAT(scattered(VariableAggregation::kMean), Each(sum_to(replicas)));
  EXPECT_THAT(scattered(VariableAggregation::kOnlyFirstReplica), Each(replicas));
}

void check_updates(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  const Variable variable =
      variable_in(strategy, {.initial_value = Tensor::scalar(1.0), .aggregation = VariableAggregation::kSum});
  const auto add = [](const Variable& v, const Tensor& value) { v.assign_add(value); };
  const auto twos = strategy.run([] { return Tensor::scalar(2.0); });
  strategy.extended().update(variable, add, strategy.reduce(ReduceOp::kSum, twos));
  EXPECT_THAT(values_of(variable), Each(1 + 2 * replicas));
  strategy.run([&](ReplicaContext& replica) {
    strategy.extended().update(variable, add, replica.all_reduce(ReduceOp::kSum, Tensor::scalar(1.0)));
  });
  EXPECT_THAT(values_of(variable), Each(1 + 3 * replicas));
}

}  // namespace cohort::testing
