#include "worker_contracts.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/input/distribute.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../input/batches.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Rows one_to(std::int64_t rows) { return elements_of(range(rows)); }

/// All rows that the replicas got together in a pass, sorted.
Rows rows_of_pass(const Strategy& strategy, const DistributedDataset<Tensor>& dataset) {
  Rows all;
  for (const auto& batches : dataset) {
    const Rows step = elements_of(strategy.gather(batches, 0));
    all.insert(all.end(), step.begin(), step.end());
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace

void check_each_element_once(Bootstrap& worker, int devices) {
  const Strategy strategy = strategy_of(worker, devices);
  struct Sizes {
    std::int64_t rows;
    std::int64_t batch;
  };
  for (const auto& [rows, batch] :
       std::vector<Sizes>{{0, 4}, {1, 1}, {1, 100}, {7, 3}, {23, 8}, {64, 64}, {1797, 100}}) {
    const auto distributed =
        strategy.distribute_dataset(range_dataset(rows).shuffle({.seed = 3}).batch(batch));
    for (int pass = 0; pass < 2; ++pass)
      EXPECT_EQ(rows_of_pass(strategy, distributed), one_to(rows)) << rows << " in batches of " << batch;
    const auto whole = strategy.distribute_dataset(range_dataset(rows).batch(batch, true));
    EXPECT_EQ(rows_of_pass(strategy, whole), one_to(rows / batch * batch));
  }
}

void check_equal_steps(Bootstrap& worker, int devices) {
  const Strategy strategy = strategy_of(worker, devices);
  for (const std::int64_t more : {0, 1, 5}) {
    const std::int64_t rows = 3 + more * worker.rank();
    const auto distributed = strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return counted_dataset(rows).batch(2); });
    std::int64_t steps = 0;
    std::int64_t received = 0;
    for (const auto& batches : distributed) {
      ++steps;
      for (const Tensor& part : batches.components()) received += part.shape()[0];
      const auto ones = strategy.run([] { return 1; });
      EXPECT_EQ(strategy.reduce(ReduceOp::kSum, ones), worker.size() * devices) << "all are in this step";
    }
    const std::int64_t per_step = 2 * std::int64_t{devices};
    EXPECT_EQ(steps, (3 + more * (worker.size() - 1) + per_step - 1) / per_step);
    EXPECT_EQ(received, rows);
  }
}

void check_positions(Bootstrap& worker, int devices) {
  const Strategy strategy = strategy_of(worker, devices);
  const auto by_data = [&] {
    return strategy.distribute_dataset(range_dataset(41).shuffle({.seed = 5}).batch(6));
  };
  const auto from_function = [&] {
    return strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return counted_dataset(7 + 4 * worker.rank()).batch(2); });
  };
  for (const bool function : {false, true}) {
    const auto distributed = function ? from_function() : by_data();
    static_cast<void>(rows_of_pass(strategy, distributed));
    std::vector<DatasetPosition> positions;
    std::vector<Rows> steps;
    for (auto step = distributed.begin(); step != distributed.end(); ++step) {
      positions.push_back(step.position());
      steps.push_back(elements_of(strategy.gather(*step, 0)));
    }
    for (std::size_t start = 0; start < positions.size(); ++start) {
      const auto another = function ? from_function() : by_data();
      std::size_t next = start;
      for (auto step = another.begin_at(positions[start]); step != another.end(); ++step, ++next) {
        ASSERT_LT(next, steps.size());
        EXPECT_EQ(elements_of(strategy.gather(*step, 0)), steps[next]);
      }
      EXPECT_EQ(next, steps.size());
      EXPECT_EQ(another.iterate().position().pass, positions[start].pass + 1) << "later passes follow on";
    }
  }
}

void check_failing_reader(Bootstrap& worker, int devices) {
  const Strategy strategy = strategy_of(worker, devices);
  const bool fails = worker.rank() == worker.size() - 1;
  const auto distributed = strategy.distribute_datasets_from_function(
      [&](const InputContext&) { return damaged_dataset(100, fails ? 4 * devices : 100).batch(2); });
  auto steps = distributed.iterate();
  static_cast<void>(steps.get_next());
  static_cast<void>(steps.get_next());
  const auto next = [&] { static_cast<void>(steps.get_next()); };
  if (fails) {
    EXPECT_THAT(next, ThrowsMessage<DataLoss>(HasSubstr("is damaged")));
  } else {
    EXPECT_THAT(
        next, ThrowsMessage<Aborted>(
                  AllOf(ContainsRegex(fmt::format("worker {} \\(host .+\\) failed first", worker.size() - 1)),
                        HasSubstr("is damaged"))));
  }
}

}  // namespace cohort::testing
