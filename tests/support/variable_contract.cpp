#include "variable_contract.h"

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/value/variable.h>

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

MultiWorkerMirroredStrategy strategy_of(Bootstrap& worker) {
  return MultiWorkerMirroredStrategy(worker, {.timeout_seconds = 60});
}

Variable variable_in(const Strategy& strategy, const VariableOptions& options) {
  const auto scope = strategy.scope();
  return Variable(options);
}

double value_of(const Variable& variable) { return variable.components()[0].item<double>(); }

/// 1 + 2 + ... + n: what the replicas' numbers, counted from 1, add up to.
double sum_to(int n) { return n * (n + 1) / 2.0; }

}  // namespace

void check_creation(Bootstrap& worker) {
  const auto strategy = strategy_of(worker);
  const Variable in_scope =
      variable_in(strategy, {.name = "v", .initial_value = Tensor::scalar(worker.rank() + 5.0)});
  EXPECT_EQ(value_of(in_scope), 5) << "the chief's value";
  EXPECT_THAT(in_scope.components(), SizeIs(1));
  EXPECT_EQ(in_scope.component_name(0), "v");
  const auto in_run = strategy.run([&] {
    return Variable({.initial_value = Tensor::from({worker.rank() + 1.0, worker.rank() + 2.0})});
  });
  EXPECT_THAT(in_run[0].components()[0].span<double>(), ElementsAre(1, 2));
  EXPECT_EQ(strategy.extended().should_checkpoint(), worker.rank() == 0);
  EXPECT_EQ(strategy.extended().should_save_summary(), worker.rank() == 0);
}

void check_on_write_variables(Bootstrap& worker) {
  const auto strategy = strategy_of(worker);
  const int workers = worker.size();
  const auto assigned = [&](VariableAggregation aggregation) {
    const Variable variable =
        variable_in(strategy, {.initial_value = Tensor::scalar(10.0), .aggregation = aggregation});
    const auto seen =
        strategy.run([&] { return variable.assign(worker.rank() + 1.0).read().item<double>(); });
    EXPECT_EQ(seen[0], value_of(variable));
    strategy.run([&] { variable.assign_add(1.0); });
    return value_of(variable);
  };
  EXPECT_EQ(assigned(VariableAggregation::kNone), worker.rank() + 2);
  EXPECT_EQ(assigned(VariableAggregation::kSum), sum_to(workers) + workers);
  EXPECT_EQ(assigned(VariableAggregation::kMean), (workers + 1) / 2.0 + 1);
  EXPECT_EQ(assigned(VariableAggregation::kOnlyFirstReplica), 2) << "replica 0 of all workers";
}

void check_on_read_variables(Bootstrap& worker) {
  const auto strategy = strategy_of(worker);
  const int workers = worker.size();
  const auto counted = [&](VariableAggregation aggregation) {
    const Variable variable = variable_in(strategy, {.initial_value = Tensor::scalar(10.0),
                                                     .synchronization = VariableSynchronization::kOnRead,
                                                     .aggregation = aggregation});
    strategy.run([&] { variable.assign(worker.rank() + 1.0); });
    EXPECT_EQ(value_of(variable), worker.rank() + 1);
    return variable;
  };
  const Variable sum = counted(VariableAggregation::kSum);
  EXPECT_EQ(sum.read().item<double>(), sum_to(workers));
  EXPECT_EQ(sum.assign(6.0 * workers).read().item<double>(), 6 * workers);
  EXPECT_EQ(value_of(sum), 6) << "each worker's share";
  const Variable mean = counted(VariableAggregation::kMean);
  EXPECT_EQ(mean.read().item<double>(), (workers + 1) / 2.0);
  EXPECT_EQ(mean.assign(6.0).assign_add(1.0).read().item<double>(), 7);
  EXPECT_EQ(counted(VariableAggregation::kOnlyFirstReplica).read().item<double>(), 1);
  EXPECT_THROW(static_cast<void>(counted(VariableAggregation::kNone).read()), WrongContext);

  const Variable integers = variable_in(strategy, {.dtype = DType::kInt32,
                                                   .synchronization = VariableSynchronization::kOnRead,
                                                   .aggregation = VariableAggregation::kSum});
  EXPECT_EQ(integers.assign(7).read().item<int>(), 7) << "the remainder is replica 0's";
}

void check_rows(Bootstrap& worker) {
  const auto strategy = strategy_of(worker);
  const int workers = worker.size();
  const auto scattered = [&](VariableAggregation aggregation) {
    const Variable variable =
        variable_in(strategy, {.initial_value = Tensor::from({1.0, 2.0}), .aggregation = aggregation});
    strategy.run([&] {
      // Worker r names row 1 r+1 times.
      const Tensor values = Tensor::full({worker.rank() + 1}, DType::kFloat64, workers);
      variable.scatter_add({values, Tensor::full({worker.rank() + 1}, DType::kInt32, 1), {2}});
    });
    EXPECT_EQ(variable.components()[0].span<double>()[0], 1);
    return variable.components()[0].span<double>()[1] - 2;
  };
  EXPECT_EQ(scattered(VariableAggregation::kNone), workers * (worker.rank() + 1));
  EXPECT_EQ(scattered(VariableAggregation::kSum), workers * sum_to(workers));
  EXPECT_EQ(scattered(VariableAggregation::kMean), sum_to(workers));
  EXPECT_EQ(scattered(VariableAggregation::kOnlyFirstReplica), workers);
}

void check_updates(Bootstrap& worker) {
  const auto strategy = strategy_of(worker);
  const Variable variable =
      variable_in(strategy, {.initial_value = Tensor::scalar(1.0), .aggregation = VariableAggregation::kSum});
  const auto add = [](const Variable& v, const Tensor& value) { v.assign_add(value); };
  strategy.extended().update(variable, add, strategy.reduce(ReduceOp::kSum, Tensor::scalar(2.0)));
  EXPECT_EQ(value_of(variable), 1 + 2 * worker.size());
  strategy.run([&](ReplicaContext& replica) {
    strategy.extended().update(variable, add, replica.all_reduce(ReduceOp::kSum, Tensor::scalar(1.0)));
  });
  EXPECT_EQ(value_of(variable), 1 + 3 * worker.size());
}

}  // namespace cohort::testing
