// Distributed datasets, within one worker and over two.
#include <cmath>
#include <tuple>

#include <cohort/input/distribute.h>
#include <cohort/input/make_dataset.h>
#include <cohort/strategy/strategy.h>

#include "../../input/batches.h"
#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

using Numbers = std::vector<double>;

class InputCases : public Replicas {
 protected:
  [[nodiscard]] static Dataset<Tensor> range(std::int64_t count) { return Dataset<Tensor>::range(count); }

  /// The place of replica r among those that share a batch: first one replica of each worker, then the next.
  [[nodiscard]] int turn(int r) const { return r % local_replicas() * workers() + r / local_replicas(); }

  /// What all replicas got in one step together, in the order of their turns.
  [[nodiscard]] Numbers together(const PerReplica<Tensor>& batches) const {
    const auto counts = strategy_.run(
        [](const Tensor& mine) { return Tensor::from({static_cast<double>(mine.elements())}); }, batches);
    const Numbers all = numbers(strategy_.gather(batches, 0));
    auto next = all.begin();
    std::vector<Numbers> parts(static_cast<std::size_t>(replicas()));
    int r = 0;
    for (const double count : numbers(strategy_.gather(counts, 0))) {
      const auto end = next + static_cast<std::ptrdiff_t>(count);
      parts[static_cast<std::size_t>(turn(r++))].assign(next, end);
      next = end;
    }
    Numbers ordered;
    for (const Numbers& part : parts) ordered.insert(ordered.end(), part.begin(), part.end());
    return ordered;
  }
  [[nodiscard]] std::vector<Numbers> steps_of(const DistributedDataset<Tensor>& dataset) const {
    std::vector<Numbers> steps;
    for (const auto& batches : dataset) steps.push_back(together(batches));
    return steps;
  }

  /// How many of a batch's rows replica r gets.
  [[nodiscard]] int rows_of(int r, int rows) const {
    return rows / replicas() + (turn(r) < rows % replicas() ? 1 : 0);
  }
};

/// begin, begin + 1, ..., end - 1.
Numbers between(double begin, double end) {
  Numbers list;
  for (double number = begin; number < end; ++number) list.push_back(number);
  return list;
}

TEST_P(InputCases, Case014_TwoEpochsOfArrayPairs) {
  std::vector<Tensor> rows;
  rows.reserve(6);
  for (int row = 0; row < 6; ++row) rows.push_back(Tensor::from({row * 1.0, row * 2.0}));
  const auto dataset = make_dataset(std::tuple(rows, Tensor::from({10.0, 11.0, 12.0, 13.0, 14.0, 15.0})));
  auto steps = strategy_.distribute_dataset(dataset.batch(6).repeat(2)).iterate();
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto batches = steps.get_next();
    const auto firsts = strategy_.run([](const auto& mine) { return std::get<0>(mine); }, batches);
    const auto seconds = strategy_.run([](const auto& mine) { return std::get<1>(mine); }, batches);
    EXPECT_THAT(together(firsts), ElementsAre(0, 0, 1, 2, 2, 4, 3, 6, 4, 8, 5, 10));
    EXPECT_THAT(together(seconds), ElementsAre(10, 11, 12, 13, 14, 15));
  }
  EXPECT_THAT([&] { return steps.get_next(); }, ThrowsMessage<OutOfRange>(HasSubstr("after 2 steps")));
}

TEST_P(InputCases, Case019_AnElementPerReplicaAndStep) {
  const auto distributed = strategy_.distribute_datasets_from_function([&](const InputContext& context) {
    return range(10).shard({context.num_input_pipelines, context.input_pipeline_id});
  });
  for (int pass = 0; pass < 2; ++pass) {
    int step = 0;
    for (const auto& elements : distributed) {
      for_each_local(elements, [&](int r, const Tensor& element) {
        EXPECT_EQ(element.item<std::int64_t>(), step * replicas() + turn(r));
      });
      ++step;
    }
    EXPECT_EQ(step, 10 / replicas()) << "elements that are too few for all replicas are left out";
  }
}

/// The steps of 0..8 in batches of 2 that each worker deals to its own replicas in turn.
void expect_in_turn(const DistributedDataset<Tensor>& dataset, int local_replicas, int batches) {
  int next = 0;
  for (const auto& step : dataset) {
    for (int local = 0; local < local_replicas; ++local, ++next) {
      const auto end = static_cast<double>(std::min(2 * next + 2, 9));
      EXPECT_EQ(numbers(step[static_cast<std::size_t>(local)]), between(2.0 * next, end));
    }
  }
  EXPECT_EQ(next, batches);
}

TEST_P(InputCases, Case082_PartialBatchesFromAFunction) {
  const auto distributed =
      strategy_.distribute_datasets_from_function([&](const InputContext&) { return range(9).batch(2); });
  const int steps = (5 + local_replicas() - 1) / local_replicas();
  expect_in_turn(distributed, local_replicas(), steps * local_replicas());
}

TEST_P(InputCases, Case083_WithoutTheRemainder) {
  const auto distributed = strategy_.distribute_datasets_from_function(
      [&](const InputContext&) { return range(9).batch(2, true); });
  expect_in_turn(distributed, local_replicas(), 4 / local_replicas() * local_replicas());
}

TEST_P(InputCases, Case086_BatchesAreSplitInOrder) {
  const auto steps = steps_of(strategy_.distribute_dataset(range(100).batch(10)));
  ASSERT_EQ(steps.size(), 10U);
  for (std::size_t step = 0; step < steps.size(); ++step)
    EXPECT_EQ(steps[step], between(10.0 * static_cast<double>(step), 10.0 * static_cast<double>(step + 1)));
  for (const auto& batches : strategy_.distribute_dataset(range(100).batch(10))) {
    for_each_local(batches, [&](int r, const Tensor& mine) { EXPECT_EQ(mine.shape()[0], rows_of(r, 10)); });
  }
}

TEST_P(InputCases, Case088_BatchesOfAnySize) {
  // Nobody can tell the size of what a function returns.
  const auto same = [](const Tensor& batch) { return batch; };
  const auto steps = steps_of(strategy_.distribute_dataset(range(12).batch(8).map(same)));
  EXPECT_THAT(steps, ElementsAre(between(0, 8), between(8, 12)));
  for (const auto& batches : strategy_.distribute_dataset(range(12).batch(8).map(same))) {
    const auto rows = static_cast<int>(strategy_.gather(batches, 0).elements());
    for_each_local(batches, [&](int r, const Tensor& mine) { EXPECT_EQ(mine.shape()[0], rows_of(r, rows)); });
  }
}

TEST_P(InputCases, Case092_NextIsNotForReplicas) {
  auto steps = strategy_.distribute_dataset(range(8).batch(4)).iterate();
  static_cast<void>(steps.get_next());
  meet();  // before an error of replicas parts the workers
  EXPECT_THAT([&] { strategy_.run([&] { static_cast<void>(steps.get_next()); }); },
              ThrowsMessage<WrongContext>(HasSubstr("inside a replica function")));
}

TEST_P(InputCases, Case094_WhatIsKnownOfTheBatchSize) {
  const std::int64_t batch = 2 * replicas();
  const auto finite = strategy_.distribute_dataset(range(100).batch(batch, true));
  const auto infinite = strategy_.distribute_dataset(range(100).batch(batch, true).repeat());
  const auto partial = strategy_.distribute_dataset(range(100).batch(batch));
  EXPECT_EQ(infinite.per_replica_batch_size(), 2);
  EXPECT_EQ(partial.per_replica_batch_size(), std::nullopt);
  const bool alone = workers() == 1;
  EXPECT_EQ(finite.per_replica_batch_size(), alone ? std::optional<std::int64_t>(2) : std::nullopt)
      << "another worker's data may last longer";
}

TEST_P(InputCases, Case095_ADatasetPerReplica) {
  const auto distribute = [&] {
    return strategy_.distribute_datasets_from_function(
        [](const InputContext& context) {
          const std::int64_t factor = context.input_pipeline_id + 1;
          return Dataset<Tensor>::range(factor, 10 * factor, factor);
        },
        {.replication_mode = InputReplicationMode::kPerReplica});
  };
  if (workers() > 1) {
    EXPECT_THROW(distribute(), Unimplemented) << "it is for devices of one worker";
    return;
  }
  int step = 0;
  for (const auto& elements : distribute()) {
    ++step;
    for_each_local(elements, [&](int r, const Tensor& element) {
      EXPECT_EQ(element.item<std::int64_t>(), step * (r + 1));
    });
  }
  EXPECT_EQ(step, 9);
}

TEST_P(InputCases, Case097_TheMeanOfAPartialBatch) {
  const auto dataset = Dataset<Tensor>::from_tensor_slices(Tensor::from({5.0, 6.0, 7.0})).batch(4);
  for (const auto& batches : strategy_.distribute_dataset(dataset)) {
    for_each_local(batches, [&](int r, const Tensor& mine) {
      const Numbers all{5, 6, 7};
      EXPECT_EQ(mine.shape()[0], rows_of(r, 3));
      for (const double row : numbers(mine)) EXPECT_THAT(all, ::testing::Contains(row));
    });
    EXPECT_EQ(numbers(strategy_.reduce(ReduceOp::kMean, batches, 0)), Numbers{6}) << "rows weigh the same";
  }
}

TEST_P(InputCases, Case098_ResultsOfSeveralShapes) {
  const auto dataset = Dataset<Tensor>::from_tensor_slices(Tensor::from({5.0})).batch(2);
  for (const auto& batches : strategy_.distribute_dataset(dataset)) {
    const auto results = strategy_.run(
        [](const Tensor& mine) {
          const Tensor squares = mine.clone();
          for (double& element : squares.span<double>()) element *= element;
          return std::tuple(Tensor::zeros({3}, DType::kFloat64), squares);
        },
        batches);
    for_each_local(results, [](int r, const auto& result) {
      EXPECT_THAT(numbers(std::get<0>(result)), ElementsAre(0, 0, 0));
      if (r == 0)
        EXPECT_THAT(numbers(std::get<1>(result)), ElementsAre(25));
      else
        EXPECT_THAT(numbers(std::get<1>(result)), IsEmpty());
    });
  }
}

TEST_P(InputCases, Case100_AnAccumulatorUntilTheEnd) {
  const auto scope = strategy_.scope();
  const Variable sum({.shape = {},
                      .dtype = DType::kFloat64,
                      .synchronization = VariableSynchronization::kOnRead,
                      .aggregation = VariableAggregation::kSum});
  const auto dataset = Dataset<Tensor>::from_tensor_slices(Tensor::from({5.0, 6.0, 7.0, 8.0})).batch(2);
  auto steps = strategy_.distribute_dataset(dataset).iterate();
  const auto accumulate = [&] {
    while (true) {
      const auto batches = steps.get_next();
      strategy_.run(
          [&](const Tensor& mine) {
            for (const double element : numbers(mine)) sum.assign_add(element);
          },
          batches);
    }
  };
  EXPECT_THROW(accumulate(), OutOfRange);
  EXPECT_EQ(sum.read().item<double>(), 26);
}

COHORT_INSTANTIATE_CASES(InputCases);

// Datasets distributed over two workers.

/// Expects the first worker to get the steps `wanted[0]` for its replicas, and the second `wanted[1]`.
void expect_parts(int devices, const Distribution& distribution, const std::vector<PartSteps>& wanted) {
  as_workers(2, [&](Bootstrap& worker) {
    const Strategy strategy = worker_strategy(worker, devices);
    EXPECT_EQ(parts_of(distribution(strategy, worker.rank())),
              wanted[static_cast<std::size_t>(worker.rank())]);
  });
}

Distribution of_range(std::int64_t rows, std::int64_t batch, const DistributeOptions& options = {},
                      bool drop_remainder = false) {
  return [=](const Strategy& strategy, int) {
    return strategy.distribute_dataset(Dataset<Tensor>::range(rows).batch(batch, drop_remainder), options);
  };
}

TEST(InputWorkerCase, Case085_TwoWorkersOfTwoReplicas) {
  expect_parts(2, of_range(15, 4),
               {PartSteps{{{0}, {2}}, {{4}, {6}}, {{8}, {10}}, {{12}, {14}}},
                PartSteps{{{1}, {3}}, {{5}, {7}}, {{9}, {11}}, {{13}, {}}}});
  expect_parts(
      2, of_range(15, 4, {}, true),
      {PartSteps{{{0}, {2}}, {{4}, {6}}, {{8}, {10}}}, PartSteps{{{1}, {3}}, {{5}, {7}}, {{9}, {11}}}});
}

TEST(InputWorkerCase, Case089_ShardedByData) {
  for (const AutoShardPolicy policy : {AutoShardPolicy::kAuto, AutoShardPolicy::kData}) {
    expect_parts(1, of_range(8, 3, {.auto_shard_policy = policy}),
                 {PartSteps{{{0, 1}}, {{3, 4}}, {{6}}}, PartSteps{{{2}}, {{5}}, {{7}}}});
  }
}

TEST(InputWorkerCase, Case091_WorkersOfDifferentLength) {
  const Distribution longer_on_the_second = [](const Strategy& strategy, int worker) {
    return strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return Dataset<Tensor>::range(8 + worker).batch(2); });
  };
  expect_parts(1, longer_on_the_second,
               {PartSteps{{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}, {{}}},
                PartSteps{{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}, {{8}}}});
}

TEST(InputWorkerCase, DifferenceAnEndlessShardThatIsEmptyIsTheErrorOfAll) {
  as_workers(2, [&](Bootstrap& worker) {
    const Strategy strategy = worker_strategy(worker, 1);
    const auto endless = strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return counted_dataset(worker.rank() == 0 ? 3 : 0).batch(2).repeat(); });
    auto batches = endless.iterate();
    if (worker.rank() == 1) {
      EXPECT_THAT([&] { return batches.get_next(); },
                  ThrowsMessage<InvalidArgument>(
                      ContainsRegex("the data of worker 1 \\(host .+\\) ended after 0 steps")));
      return;
    }
    static_cast<void>(batches.get_next());
    EXPECT_THAT([&] { return strategy.reduce(ReduceOp::kSum, strategy.run([] { return 1.0; })); },
                ThrowsMessage<Aborted>(HasSubstr("worker 1")));
  });
}

TEST(InputWorkerCase, DifferenceAnEndlessDatasetThatOnlyOneWorkerFindsEmptyIsTheErrorOfAll) {
  as_workers(2, [&](Bootstrap& worker) {
    const Strategy strategy = worker_strategy(worker, 1);
    auto batches =
        strategy.distribute_dataset(counted_dataset(worker.rank() == 0 ? 3 : 0).batch(2).repeat()).iterate();
    EXPECT_THAT(
        [&] {
          static_cast<void>(batches.get_next());
          return strategy.reduce(ReduceOp::kSum, strategy.run([] { return 1.0; }));
        },
        ThrowsMessage<InvalidArgument>(HasSubstr("ends its pass over a distributed dataset after 0 steps")));
  });
}

TEST(InputWorkerCase, DifferenceDroppedRemaindersEndThePassOfAllWithTheFirst) {
  const Distribution longer_on_the_second = [](const Strategy& strategy, int worker) {
    return strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return Dataset<Tensor>::range(4 + 2 * worker).batch(2, true); });
  };
  expect_parts(1, longer_on_the_second, {PartSteps{{{0, 1}}, {{2, 3}}}, PartSteps{{{0, 1}}, {{2, 3}}}});
}

}  // namespace
}  // namespace cohort::testing
