#include "worker_contracts.h"

#include <gtest/gtest.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/losses/loss_reduction.h>
#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/metrics/means.h>
#include <cohort/train/metrics/metric_set.h>

namespace cohort::testing {
namespace {

/// Replica r has r values, all of them r; replica 0 has none.
Tensor values_of(int replica) { return Tensor::full({replica}, DType::kFloat32, replica); }

double mean_of_values(int replicas) {
  double sum = 0;
  double count = 0;
  for (int r = 0; r < replicas; ++r) {
    sum += r * r;
    count += r;
  }
  return count == 0 ? 0 : sum / count;
}

/// Two rows, of which those of even replicas have the largest prediction at the label.
void add_rows(const Metric& accuracy, int replica) {
  const Tensor predictions = Tensor::from({0.1F, 0.9F, 0.8F, 0.2F}).reshape({2, 2});
  const int first = replica % 2 == 0 ? 1 : 0;
  accuracy.update_state(Tensor::from({first, 1 - first}), predictions);
}

}  // namespace

void check_metrics(Bootstrap& worker, int devices) {
  const MultiWorkerMirroredStrategy strategy = strategy_of(worker, devices);
  const auto scope = strategy.scope();
  const Mean mean;
  for (int epoch = 0; epoch < 2; ++epoch) {
    strategy.run([&](ReplicaContext& replica) {
      const int id = replica.replica_id_in_sync_group();
      mean.update_state(values_of(id));
      EXPECT_EQ(mean.result().item<double>(), id) << "inside a replica its own";
    });
    EXPECT_EQ(mean.result().item<double>(), mean_of_values(strategy.num_replicas_in_sync()));
    mean.reset_state();
    EXPECT_EQ(mean.result().item<double>(), 0);
  }
  mean.update_state(4.0);
  EXPECT_DOUBLE_EQ(mean.result().item<double>(), 4);
}

void check_metric_sets(Bootstrap& worker, int devices) {
  const MultiWorkerMirroredStrategy strategy = strategy_of(worker, devices);
  const auto scope = strategy.scope();
  const Mean loss("loss");
  const Metric accuracy = metrics::sparse_categorical_accuracy();
  const Sum sum;
  MetricSet set({loss, accuracy, sum});
  strategy.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    loss.update_state(values_of(id));
    sum.update_state(Tensor::scalar(1.0));
    add_rows(accuracy, id);
  });
  const int replicas = strategy.num_replicas_in_sync();
  const std::span<const MetricResult> results = set.results();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].name, "loss");
  EXPECT_EQ(results[0].value(), mean_of_values(replicas));
  const int right = (replicas + 1) / 2;
  EXPECT_EQ(results[1].value(), static_cast<double>(right) / replicas);
  EXPECT_EQ(results[2].value(), replicas);
  set.reset_state();
  EXPECT_EQ(set.results()[2].value(), 0);
}

void check_reduced_losses(Bootstrap& worker, int devices) {
  const MultiWorkerMirroredStrategy strategy = strategy_of(worker, devices);
  const auto scope = strategy.scope();
  const int replicas = strategy.num_replicas_in_sync();
  const auto sum_of_parts = [&](const ReduceLossesOptions& options) {
    const auto parts = strategy.run([&](ReplicaContext& replica) {
      return reduce_losses(values_of(replica.replica_id_in_sync_group()), options);
    });
    return strategy.reduce(ReduceOp::kSum, parts).item<float>();
  };
  EXPECT_FLOAT_EQ(sum_of_parts({}), static_cast<float>(mean_of_values(replicas)));
  const Tensor two = Tensor::scalar(2.0);
  EXPECT_FLOAT_EQ(sum_of_parts({.sample_weight = two}), static_cast<float>(2 * mean_of_values(replicas)));
  EXPECT_FLOAT_EQ(sum_of_parts({.reduction = LossReduction::kMeanWithSampleWeight, .sample_weight = two}),
                  static_cast<float>(mean_of_values(replicas)));
}

}  // namespace cohort::testing
