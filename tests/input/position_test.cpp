// A pass that is resumed at a position gives the elements that the first one had left.
#include <atomic>
#include <filesystem>
#include <limits>
#include <random>

#include <gmock/gmock.h>

#include "batches.h"

namespace cohort::testing {
namespace {

/// The elements from a position on, at most `most`.
Steps rest_of(const Dataset<Tensor>& dataset, const DatasetPosition& position, std::size_t most) {
  Steps steps;
  for (auto at = dataset.begin_at(position); at != dataset.end() && steps.size() < most; ++at) {
    steps.push_back(elements_of(*at));
  }
  return steps;
}

void expect_every_position_to_lead_on(const Dataset<Tensor>& dataset) {
  constexpr std::size_t kMost = 40;
  for (const std::uint64_t pass : {0u, 3u}) {
    const Steps whole = rest_of(dataset, {.pass = pass}, kMost);
    for (std::size_t given = 0; given <= whole.size(); ++given) {
      const Steps expected(whole.begin() + static_cast<std::ptrdiff_t>(given), whole.end());
      ASSERT_EQ(
          rest_of(dataset, {.pass = pass, .elements = static_cast<std::int64_t>(given)}, expected.size()),
          expected)
          << "pass " << pass << " from element " << given;
    }
  }
}

TEST(Position, CountsWhatWasGiven) {
  const auto dataset = range_dataset(5).shuffle({.seed = 1}).batch(2);
  auto at = dataset.begin();
  EXPECT_EQ(at.position(), (DatasetPosition{.pass = 0, .elements = 0}));
  ++at;
  EXPECT_EQ(at.position(), (DatasetPosition{.pass = 0, .elements = 1}));
  EXPECT_EQ(dataset.begin().position(), (DatasetPosition{.pass = 1, .elements = 0}));
  EXPECT_EQ(dataset.begin_at({.pass = 7, .elements = 2}).position(),
            (DatasetPosition{.pass = 7, .elements = 2}));
  EXPECT_EQ(dataset.begin().position().pass, 8u) << "passes follow on";
}

TEST(Position, CountsAnErrorAsAnElement) {
  const auto dataset = range_dataset(4).map(failing_at(1));
  auto at = dataset.begin();
  EXPECT_THROW(++at, std::runtime_error);
  EXPECT_EQ(at.position().elements, 1);
  ++at;
  EXPECT_EQ(elements_of(*at), (Rows{2}));
  EXPECT_EQ(elements_of(*dataset.begin_at(at.position())), (Rows{2}));
}

TEST(Position, IsNeverNegative) {
  for (const auto& dataset : {range_dataset(3), range_dataset(7).batch(3), range_dataset(3).repeat(2)}) {
    for (const std::int64_t elements : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
      EXPECT_THAT([&] { static_cast<void>(dataset.begin_at({.pass = 0, .elements = elements})); },
                  ::testing::ThrowsMessage<InvalidArgument>(::testing::HasSubstr("Iterator::position()")));
    }
  }
}

TEST(Position, BehindTheEndIsTheEnd) {
  for (const auto& dataset : {range_dataset(3), counted_dataset(3), range_dataset(3).shuffle(),
                              range_dataset(7).batch(3), range_dataset(3).shard({2, 0}).repeat(2)}) {
    EXPECT_TRUE(dataset.begin_at({.elements = 50}) == dataset.end());
  }
}

/// Adds a stage chosen at random to `dataset`; elements stay vectors or scalars of numbers.
Dataset<Tensor> with_random_stage(const Dataset<Tensor>& dataset, std::mt19937& random) {
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  const auto twice = [](const Tensor& element) {
    Tensor result = element.clone();
    for (std::int64_t& value : result.span<std::int64_t>()) value *= 2;
    return result;
  };
  const auto even = [](const Tensor& element) {
    return element.elements() > 0 && element.span<std::int64_t>()[0] / 2 % 3 != 0;
  };
  const auto again = [](const Tensor& element) { return Dataset<Tensor>::from_tensors(element).repeat(3); };
  const auto seed = static_cast<std::uint64_t>(number(0, 100));
  switch (number(0, 15)) {
    case 0: return dataset.map(twice);
    case 1: return dataset.map(twice, {.parallelism = static_cast<int>(number(2, 4))});
    case 2: return dataset.filter(even);
    case 3: return dataset.shuffle({.buffer = number(1, 12), .seed = seed});
    case 4: return dataset.take(30).shuffle({.seed = seed});
    case 5: return dataset.repeat(number(1, 3));
    case 6: return dataset.take(number(0, 30));
    case 7: return dataset.skip(number(0, 5));
    case 8: return dataset.shard({static_cast<int>(number(1, 3)), 0});
    case 9: return dataset.concatenate(Dataset<Tensor>::range(5).shuffle({.seed = seed}));
    case 10: return dataset.interleave(again, {number(1, 3), number(1, 4), number(0, 2)});
    case 11: return dataset.prefetch(number(1, 3));
    case 12: return dataset.cache();
    case 13:
      return zip(dataset, dataset.enumerate()).map([](const auto& both) {
        return plus(Tensor::scalar(std::get<0>(both).template span<std::int64_t>()[0]),
                    std::get<1>(both).first);
      });
    case 14:
      return dataset.shuffle({.buffer = number(1, 12), .seed = seed, .reshuffle_each_iteration = false});
    default: return dataset.repeat().take(number(1, 60));
  }
}

TEST(Position, LeadsOnInRandomPipelines) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const auto rows = static_cast<std::int64_t>(random() % 25);
    auto dataset = seed % 3 == 0   ? counted_dataset(rows)
                   : seed % 3 == 1 ? range_dataset(rows)
                                   : Dataset<Tensor>::range(rows);
    const auto stages = 1 + random() % 4;
    for (unsigned stage = 0; stage < stages; ++stage) dataset = with_random_stage(dataset, random);
    if (seed % 2 == 0)
      dataset = dataset.take(30).batch(1 + static_cast<std::int64_t>(random() % 5), seed % 4 == 0);
    if (seed % 8 == 0) dataset = dataset.unbatch();
    SCOPED_TRACE(seed);
    expect_every_position_to_lead_on(dataset);
    if (HasFatalFailure()) return;
  }
}

TEST(Position, InAnEndlessShuffledPipelineLeadsOn) {
  expect_every_position_to_lead_on(range_dataset(7).shuffle({.seed = 2}).repeat().batch(3));
  expect_every_position_to_lead_on(range_dataset(7).repeat().shuffle({.buffer = 5, .seed = 2}).batch(3));
}

TEST(Position, SeesEachElementOfAnEpochOnceThroughManyRestarts) {
  std::vector<int> seen(100);
  DatasetPosition position{.pass = 4};
  for (bool ended = false; !ended;) {
    // As in a new process: the pipeline is made anew, and all that is known is the position.
    const auto pipeline = counted_dataset(100)
                              .shuffle({.buffer = 16, .seed = 9})
                              .map([](const Tensor& element) { return element; }, {.parallelism = 2})
                              .batch(3)
                              .prefetch(2);
    auto at = pipeline.begin_at(position);
    for (int step = 0; step < 4 && at != pipeline.end(); ++step, ++at) {
      for (const std::int64_t value : elements_of(*at)) ++seen[static_cast<std::size_t>(value)];
    }
    position = at.position();
    ended = at == pipeline.end();
  }
  EXPECT_THAT(seen, ::testing::Each(1));
}

TEST(Skipping, CallsNoFunctionForElementsThatAreNotWanted) {
  std::atomic<int> calls = 0;
  const auto mapped = range_dataset(1000).map([&](const Tensor& element) {
    ++calls;
    return element;
  });
  const auto calls_for = [&](const Dataset<Tensor>& dataset, std::int64_t skipped) {
    calls = 0;
    const auto at = dataset.begin_at({.elements = skipped});
    EXPECT_NE(at, dataset.end());
    return calls.load();
  };
  EXPECT_EQ(calls_for(mapped, 900), 1);
  EXPECT_EQ(calls_for(mapped.batch(10), 90), 10);
  EXPECT_EQ(calls_for(mapped.repeat(), 123'456'789'012), 1);
  EXPECT_EQ(calls_for(mapped.shard({7, 3}).take(200).skip(5), 100), 1);
  EXPECT_EQ(calls_for(zip(mapped, mapped).map([](const auto& both) { return std::get<0>(both); }), 900), 2);
  EXPECT_LE(calls_for(mapped.map([](const Tensor& element) { return element; }, {.parallelism = 4}), 900), 6);
  EXPECT_EQ(calls_for(mapped.concatenate(mapped), 1900), 1);
  EXPECT_EQ(calls_for(mapped.shuffle({.seed = 1}), 999), 1) << "a whole pass drawn, but one read";
  EXPECT_LE(calls_for(mapped.shuffle({.buffer = 8, .seed = 1}), 900), 8);
}

}  // namespace
}  // namespace cohort::testing
