// What all metrics have in common: the sums of each replica, and what becomes of them.
#include <cohort/train/metrics/metric.h>

#include <gmock/gmock.h>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/metrics/means.h>
#include <cohort/train/metrics/metric_set.h>

#include "../../../benchmarks/dispatch/allocations.h"
#include "../../strategy/fake_cluster.h"
#include "../../strategy/strategies.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Mean, WeighsValues) {
  const Mean mean;
  EXPECT_EQ(mean.result().item<double>(), 0);
  mean.update_state(Tensor::from({1.0F, 2.0F, 3.0F}), Tensor::from({1.0F, 0.0F, 2.0F}));
  EXPECT_DOUBLE_EQ(mean.result().item<double>(), 7.0 / 3);
  mean.update_state(Tensor::from({4, -1}), Tensor::scalar(0.5));
  EXPECT_DOUBLE_EQ(mean.result().item<double>(), 8.5 / 4);
  mean.update_state(Tensor::zeros({0}, DType::kFloat32));
  EXPECT_DOUBLE_EQ(mean.result().item<double>(), 8.5 / 4);
  EXPECT_THAT(
      [&] {
        mean.update_state(Tensor::from({1.0, 2.0, 3.0}), Tensor::from({1.0, 2.0}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("float64[3] has the weights float64[2]")));
  EXPECT_DOUBLE_EQ(mean.result().item<double>(), 8.5 / 4) << "nothing is changed by an update that fails";
}

TEST(Mean, WeighsRows) {
  const Mean mean;
  const Tensor rows = Tensor::from({1.0, 2.0, 3.0, 5.0}).reshape({2, 2});
  mean.update_state(rows, Tensor::from({1.0, 0.5}));
  EXPECT_DOUBLE_EQ(mean.result().item<double>(), 7.0 / 3);
}

TEST(Mean, KeepsSumsInDoublePrecision) {
  const Mean mean;
  const Tensor large = Tensor::full({1}, DType::kFloat32, 16777216);
  const Tensor one = Tensor::full({1}, DType::kFloat32, 1);
  mean.update_state(large);
  mean.update_state(one);
  EXPECT_EQ(mean.result().item<double>(), 16777217.0 / 2);
}

TEST(MeanTensor, HasAMeanForEachElement) {
  const MeanTensor mean({2});
  mean.update_state(Tensor::from({1.0, 2.0}), Tensor::from({1.0, 0.0}));
  EXPECT_THAT(numbers(mean.result()), ElementsAre(1, 0));
  mean.update_state(Tensor::from({3.0, 4.0}));
  EXPECT_THAT(numbers(mean.result()), ElementsAre(2, 4));
  EXPECT_THAT([&] { mean.update_state(Tensor::from({1.0})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("made for the shape [2]")));
}

class MetricOfReplicas : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(MetricOfReplicas);

TEST_P(MetricOfReplicas, CountsAnUpdateOutsideReplicasOnce) {
  const auto scope = strategy_.scope();
  const Sum sum;
  sum.update_state(Tensor::scalar(6.0));
  EXPECT_DOUBLE_EQ(sum.result().item<double>(), 6);
}

TEST_P(MetricOfReplicas, ForgetsTheSumsOfAReplicaAlone) {
  const auto scope = strategy_.scope();
  const Sum sum;
  strategy_.run([&] { sum.update_state(Tensor::scalar(1.0)); });
  strategy_.run([&](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() == 0) sum.reset_state();
  });
  EXPECT_EQ(sum.result().item<double>(), replicas() - 1);
}

TEST_P(MetricOfReplicas, AllocatesNothingInAStepLikeTheOneBefore) {
  const auto scope = strategy_.scope();
  const Mean loss("loss");
  const Metric accuracy = metrics::sparse_categorical_accuracy();
  MetricSet set({loss, accuracy});
  const Tensor labels = Tensor::zeros({64}, DType::kInt32);  // converted
  const Tensor logits = Tensor::zeros({64, 10}, DType::kBFloat16);
  const Tensor weight = Tensor::scalar(1.0);
  const auto step = [&] {
    strategy_.run([&] {
      loss.update_state(logits, weight);
      accuracy.update_state(labels, logits, weight);
    });
    static_cast<void>(set.results());
    set.reset_state();
  };
  step();
  const std::size_t before = bench::allocations();
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(bench::allocations() - before, 0U);
}

TEST(Metric, WorksUnderCentralStorage) {
  const CentralStorageStrategy strategy(cpu_devices(3));
  const auto scope = strategy.scope();
  const Sum sum;
  strategy.run([&](ReplicaContext& replica) {
    sum.update_state(Tensor::scalar(replica.replica_id_in_sync_group() + 1.0));
  });
  EXPECT_EQ(sum.result().item<double>(), 6);
}

TEST(Metric, BelongsToTheStrategyOfItsScope) {
  const Sum plain;
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THAT([&] { strategy.run([&] { plain.update_state(Tensor::scalar(1.0)); }); },
              ThrowsMessage<WrongContext>(HasSubstr("make the metric in the scope")));
  plain.bind(strategy);
  strategy.run([&] { plain.update_state(Tensor::scalar(1.0)); });
  EXPECT_EQ(plain.result().item<double>(), 2);
  EXPECT_THAT([&] { strategy.run([&] { const Sum own; }); },
              ThrowsMessage<WrongContext>(HasSubstr("was made inside a replica")));
}

TEST(MetricSet, RefusesWhatCannotBeTold) {
  EXPECT_THAT(
      [] {
        MetricSet({Mean(), Mean()});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("two metrics have the name 'mean'")));
  const MirroredStrategy strategy = mirrored(2);
  const Mean mean;
  const Sum sum;
  sum.bind(strategy);
  EXPECT_THAT(
      [&] {
        MetricSet({mean, sum});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("belong to different strategies")));
  MetricSet set({sum});
  EXPECT_THAT([&] { strategy.run([&] { static_cast<void>(set.results()); }); },
              ThrowsMessage<WrongContext>(HasSubstr("inside a replica")));
}

struct Layout {
  int workers;
  int devices;
};

class MetricOfWorkers : public ::testing::TestWithParam<Layout> {
 protected:
  static void on_every_worker(void (*check)(Bootstrap& worker, int devices)) {
    for_each_worker(GetParam().workers, [&](Bootstrap& worker) { check(worker, GetParam().devices); });
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, MetricOfWorkers,
                         ::testing::Values(Layout{1, 1}, Layout{2, 1}, Layout{2, 2}, Layout{3, 1},
                                           Layout{4, 1}, Layout{5, 3}));

TEST_P(MetricOfWorkers, AddsUpAllReplicas) { on_every_worker(check_metrics); }
TEST_P(MetricOfWorkers, AddsUpInSets) { on_every_worker(check_metric_sets); }
TEST_P(MetricOfWorkers, ReducesLosses) { on_every_worker(check_reduced_losses); }

TEST(MetricSetOfWorkers, NamesWorkersWhoseMetricsDiffer) {
  for_each_worker(2, [](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, kPatient);
    const auto scope = strategy.scope();
    MetricSet set({worker.rank() == 0 ? MetricHandle(Mean("loss")) : MetricHandle(Mean("error"))});
    EXPECT_THAT([&] { static_cast<void>(set.results()); }, ThrowsMessage<Error>(HasSubstr("error")));
  });
}

}  // namespace
}  // namespace cohort::testing
