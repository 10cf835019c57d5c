// Workers whose data ends at different times, or cannot be read.
#include <gmock/gmock.h>

#include <cohort/input/distribute.h>
#include <cohort/strategy/mirrored_strategy.h>

#include "batches.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

/// Worker w counts to `counts[w]`, in batches of 2. The number is known beforehand, or not.
std::vector<PartSteps> uneven_parts(const std::vector<std::int64_t>& counts, int devices, bool known) {
  return parts_by_worker(static_cast<int>(counts.size()), devices, [&](const Strategy& strategy, int worker) {
    return strategy.distribute_datasets_from_function([&](const InputContext&) {
      const std::int64_t count = counts[static_cast<std::size_t>(worker)];
      return (known ? range_dataset(count) : counted_dataset(count)).batch(2);
    });
  });
}

class UnevenWorkers : public ::testing::TestWithParam<bool> {
 protected:
  static std::vector<PartSteps> parts(const std::vector<std::int64_t>& counts, int devices = 1) {
    return uneven_parts(counts, devices, GetParam());
  }
};

TEST_P(UnevenWorkers, GoOnWithEmptyBatchesUntilAllHaveEnded) {
  EXPECT_THAT(parts({8, 9}), ElementsAre(PartSteps{{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}, {{}}},
                                         PartSteps{{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}, {{8}}}));
  EXPECT_THAT(parts({2, 8}), ElementsAre(PartSteps{{{0, 1}}, {{}}, {{}}, {{}}},
                                         PartSteps{{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}}));
}

TEST_P(UnevenWorkers, MayHaveNoDataAtAll) {
  EXPECT_THAT(parts({0, 3, 0}),
              ElementsAre(PartSteps{{{}}, {{}}}, PartSteps{{{0, 1}}, {{2}}}, PartSteps{{{}}, {{}}}));
  EXPECT_THAT(parts({0, 0}), Each(IsEmpty()));
}

TEST_P(UnevenWorkers, MayHaveSeveralReplicas) {
  EXPECT_THAT(parts({3, 10}, 2), ElementsAre(PartSteps{{{0, 1}, {2}}, {{}, {}}, {{}, {}}},
                                             PartSteps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8, 9}, {}}}));
}

TEST_P(UnevenWorkers, EndTogetherWhereBatchesCannotBeEmpty) {
  const auto by_worker = parts_by_worker(3, 1, [&](const Strategy& strategy, int worker) {
    return strategy.distribute_datasets_from_function([&](const InputContext&) {
      return GetParam() ? range_dataset(4 - worker) : counted_dataset(4 - worker);
    });
  });
  EXPECT_THAT(by_worker, Each(PartSteps{{{0}}, {{1}}}));
}

INSTANTIATE_TEST_SUITE_P(Cardinality, UnevenWorkers, ::testing::Bool(),
                         [](const auto& known) { return known.param ? "Known" : "Unknown"; });

TEST(UnevenEnds, KeepTheShapeAndDtypeOfTheOthersRows) {
  for_each_worker(2, [](Bootstrap& worker) {
    const auto strategy = worker_strategy(worker, 1);
    const auto distributed = strategy.distribute_datasets_from_function([&](const InputContext&) {
      return Dataset<Tensor>::from_tensor_slices(Tensor::zeros({worker.rank() * 2, 3}, DType::kFloat32))
          .batch(2);
    });
    int steps = 0;
    for (const auto& batches : distributed) {
      EXPECT_EQ(batches[0].shape(), (Shape{2 * worker.rank(), 3}));
      EXPECT_EQ(batches[0].dtype(), DType::kFloat32);
      ++steps;
    }
    EXPECT_EQ(steps, 1);
  });
}

TEST(UnevenEnds, LetReplicasReduceEmptyBatches) {
  for_each_worker(3, [](Bootstrap& worker) {
    const auto strategy = worker_strategy(worker, 2);
    const auto distributed = strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return counted_dataset(worker.rank() * 4).batch(2); });
    std::vector<double> sums;
    std::vector<double> means;
    std::vector<double> all_reduced;
    for (const auto& batches : distributed) {
      sums.push_back(strategy.reduce(ReduceOp::kSum, batches, 0).cast(DType::kFloat64).item<double>());
      means.push_back(strategy.reduce(ReduceOp::kMean, batches, 0).item<double>());
      const auto rows = strategy.run(
          [](ReplicaContext& replica, const Tensor& mine) {
            return replica.all_reduce(ReduceOp::kSum, static_cast<double>(mine.shape()[0]));
          },
          batches);
      all_reduced.push_back(rows[0]);
      EXPECT_EQ(strategy.gather(batches, 0).shape()[0], static_cast<std::int64_t>(rows[0]));
    }
    EXPECT_THAT(sums, ElementsAre(6 + 6, 22));
    EXPECT_THAT(means, ElementsAre(1.5, 5.5)) << "by the number of elements";
    EXPECT_THAT(all_reduced, ElementsAre(8, 4));
  });
}

TEST(UnevenEnds, AskNothingWhereAllHaveTheSameSteps) {
  // Worker 0 takes one step more, alone: it would wait for the others if there were anything to ask.
  for_each_worker(2, [](Bootstrap& worker) {
    const auto strategy = worker_strategy(worker, 1);
    const auto distributed = strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return range_dataset(6).batch(2); });
    auto steps = distributed.iterate();
    const int own = worker.rank() == 0 ? 3 : 2;
    for (int step = 0; step < own; ++step) static_cast<void>(steps.get_next());
    EXPECT_EQ(strategy.reduce(ReduceOp::kSum, 1), 2);
  });
}

/// Row 5 of worker 1's data is damaged; the step has its part read ahead, or not.
class DamagedInput : public ::testing::TestWithParam<int> {};

TEST_P(DamagedInput, EndsTheStepOnEveryWorker) {
  for_each_worker(3, [](Bootstrap& worker) {
    const auto strategy = worker_strategy(worker, 1);
    const auto distributed = strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return damaged_dataset(20, worker.rank() == 1 ? 5 : 20).batch(2); },
        {.per_replica_buffer_size = GetParam()});
    auto steps = distributed.iterate();
    static_cast<void>(steps.get_next());
    static_cast<void>(steps.get_next());
    if (worker.rank() == 1) {
      EXPECT_THAT([&] { static_cast<void>(steps.get_next()); }, ThrowsMessage<DataLoss>("row 5 is damaged"));
    } else {
      EXPECT_THAT([&] { static_cast<void>(steps.get_next()); },
                  ThrowsMessage<Aborted>(AllOf(HasSubstr("worker 1"), HasSubstr("row 5 is damaged"))));
    }
  });
}

TEST_P(DamagedInput, EndsWhatTheOthersDoWhereNothingIsAsked) {
  for_each_worker(3, [](Bootstrap& worker) {
    const auto strategy = worker_strategy(worker, 1);
    const auto dataset = damaged_dataset(20, worker.rank() == 1 ? 5 : 20).batch(2);
    const auto train = [&] {
      for (const auto& batches :
           strategy.distribute_dataset(dataset, {.input = {.per_replica_buffer_size = GetParam()}}))
        static_cast<void>(strategy.reduce(ReduceOp::kSum, batches, 0));
    };
    if (worker.rank() == 1)
      EXPECT_THAT(train, ThrowsMessage<DataLoss>("row 5 is damaged"));
    else
      EXPECT_THAT(train, ThrowsMessage<Aborted>(AllOf(HasSubstr("worker 1"), HasSubstr("row 5 is damaged"))));
  });
}

TEST_P(DamagedInput, GivesTheStepsBeforeIt) {
  const MirroredStrategy strategy(cpu_devices(2));
  PartSteps steps;
  const auto train = [&] {
    for (const auto& batches : strategy.distribute_dataset(
             damaged_dataset(20, 9).batch(4), {.input = {.per_replica_buffer_size = GetParam()}}))
      steps.push_back(rows_by_replica(batches));
  };
  EXPECT_THAT(train, ThrowsMessage<DataLoss>("row 9 is damaged"));
  EXPECT_EQ(steps, (PartSteps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}}));
}

TEST_P(DamagedInput, DoesNotMatterToWhoLeavesBefore) {
  const MirroredStrategy strategy(cpu_devices(2));
  const auto distributed = strategy.distribute_dataset(damaged_dataset(20, 9).batch(4),
                                                       {.input = {.per_replica_buffer_size = GetParam()}});
  for (const auto& batches : distributed) {
    if (elements_of(batches[0]).front() == 4) break;
  }
  EXPECT_THROW(for ([[maybe_unused]] const auto& batches
                    : distributed) throw std::runtime_error("of the program"),
               std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(ReadAhead, DamagedInput, ::testing::Values(0, 1, 4));

}  // namespace
}  // namespace cohort::testing
