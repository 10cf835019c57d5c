// Stages with threads of their own: map in parallel, prefetch, interleave that reads ahead.
#include <atomic>
#include <barrier>
#include <chrono>
#include <latch>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <cohort/value/device_scope.h>

#include "batches.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

/// Takes longer for some elements than for others.
Tensor twice(const Tensor& element) {
  const auto value = element.item<std::int64_t>();
  for (std::int64_t turn = 0; turn < value * 7 % 5; ++turn) std::this_thread::yield();
  return Tensor::scalar(2 * value);
}

TEST(Map, GivesWhatTheFunctionReturns) {
  for (int parallelism = 1; parallelism <= 7; ++parallelism) {
    const MapOptions options{.parallelism = parallelism};
    EXPECT_THAT(pass_of(range_dataset(5).map(twice, options)), ElementsAre(0, 2, 4, 6, 8));
    EXPECT_THAT(pass_of(range_dataset(0).map(twice, options)), IsEmpty());
    EXPECT_THAT(pass_of(range_dataset(1).map(twice, options)), ElementsAre(0));
    EXPECT_THAT(pass_of(range_dataset(2).repeat().map(twice, options).take(5)), ElementsAre(0, 2, 0, 2, 0));
    EXPECT_EQ(steps_of(range_dataset(5).map(twice, options).batch(2)), (Steps{{0, 2}, {4, 6}, {8}}));
  }
}

TEST(Map, MayChangeTheTypeOfElements) {
  const auto examples = range_dataset(3).map([](const Tensor& element) {
    return Example{.image = element.reshape({1, 1}), .label = element};
  });
  const auto words =
      examples.map([](const Example& example) { return std::to_string(example.label.item<int>()); });
  std::string text;
  for (const std::string& word : words.filter([](const std::string& word) { return word != "1"; }))
    text += word;
  EXPECT_EQ(text, "02");
  for (const Example& batch : examples.batch(3)) EXPECT_EQ(batch.image.shape(), (Shape{3, 1, 1}));
}

TEST(Map, KeepsTheOrderUnlessToldOtherwise) {
  const Rows in_order = pass_of(range_dataset(200).map(twice));
  for (int parallelism = 2; parallelism <= 7; ++parallelism) {
    EXPECT_EQ(pass_of(range_dataset(200).map(twice, {.parallelism = parallelism})), in_order);
    const Rows any =
        pass_of(range_dataset(200).map(twice, {.parallelism = parallelism, .keep_order = false}));
    EXPECT_THAT(any, ::testing::UnorderedElementsAreArray(in_order));
  }
}

TEST(Map, RunsAsManyCallsAtATime) {
  constexpr int kParallelism = 3;
  std::barrier all_there(kParallelism);  // no call goes on before three run
  const auto meet = [&](const Tensor& element) {
    all_there.arrive_and_wait();
    return element;
  };
  EXPECT_THAT(pass_of(range_dataset(6).map(meet, {.parallelism = kParallelism})),
              ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Map, WithoutOrderDoesNotWaitForASlowElement) {
  std::latch others_were_given(1);
  const auto hold_first = [&](const Tensor& element) {
    if (element.item<std::int64_t>() == 0) others_were_given.wait();
    return element;
  };
  const auto mapped = range_dataset(4).map(hold_first, {.parallelism = 2, .keep_order = false});
  const auto elements = mapped.node()->iterate(detail::Pass(0));
  for (const std::int64_t expected : {1, 2, 3}) EXPECT_EQ(elements->next()->item<std::int64_t>(), expected);
  others_were_given.count_down();
  EXPECT_EQ(elements->next()->item<std::int64_t>(), 0);
  EXPECT_FALSE(elements->next());
}

/// Counts how many elements have been read.
Dataset<Tensor> watched(std::atomic<int>& read) {
  return range_dataset(1000).map([&read](const Tensor& element) {
    ++read;
    return element;
  });
}

TEST(Map, ReadsNoFurtherAheadThanItsParallelism) {
  std::atomic<int> read = 0;
  const auto dataset = watched(read).map([](const Tensor& element) { return element; }, {.parallelism = 3});
  EXPECT_EQ(read, 0) << "lazy";
  {
    const auto elements = dataset.node()->iterate(detail::Pass(0));
    for (int given = 1; given <= 20; ++given) {
      ASSERT_TRUE(elements->next());
      EXPECT_LE(read, given + 3);
    }
  }
  EXPECT_LE(read, 23) << "all threads have ended with the iterator";
}

TEST(Map, ThrowsErrorsInTheirPlaceAndGoesOn) {
  for (int parallelism = 1; parallelism <= 4; ++parallelism) {
    const MapOptions options{.parallelism = parallelism};
    EXPECT_EQ(outcomes_of(range_dataset(5).map(failing_at(2), options)), "0 1 ! 3 4 .");
    EXPECT_EQ(outcomes_of(range_dataset(1).map(failing_at(0), options)), "! .");
    EXPECT_EQ(outcomes_of(range_dataset(5).map(failing_at(2)).map(twice, options)), "0 2 ! 6 8 .")
        << "also errors of the source";
  }
}

TEST(Map, NeedsAtLeastOneThread) {
  EXPECT_THAT([] { return range_dataset(1).map(twice, {.parallelism = 0}); },
              ThrowsMessage<InvalidArgument>("map(): parallelism must be at least 1, not 0"));
}

TEST(Filter, KeepsWhatThePredicateHoldsFor) {
  const auto odd = [](const Tensor& element) { return element.item<std::int64_t>() % 2 == 1; };
  EXPECT_THAT(pass_of(range_dataset(6).filter(odd)), ElementsAre(1, 3, 5));
  EXPECT_THAT(pass_of(range_dataset(1).filter(odd)), IsEmpty());
  EXPECT_THAT(pass_of(range_dataset(3).repeat().filter(odd).take(2)), ElementsAre(1, 1));
  EXPECT_EQ(steps_of(range_dataset(6).filter(odd).batch(2)), (Steps{{1, 3}, {5}}));
  const auto fails_at_two = [](const Tensor& element) { return failing_at(2)(element).elements() == 1; };
  EXPECT_EQ(outcomes_of(range_dataset(4).filter(fails_at_two)), "0 1 ! 3 .");
}

TEST(Batch, LeavesTheRowsOfLaterBatchesWhereTheyAre) {
  EXPECT_EQ(outcomes_of(range_dataset(6).map(failing_at(1)).batch(2)), "! 2 3 4 5 .");
  EXPECT_EQ(outcomes_of(range_dataset(5).map(failing_at(3)).batch(3)), "0 1 2 ! .");
}

TEST(Batch, LeavesThemThereAlsoWhereSeveralRowsFail) {
  const auto fail = [](const Tensor& element) {
    const auto value = element.item<std::int64_t>();
    if (value == 0 || value == 1) throw std::runtime_error("a bad element");
    return element;
  };
  const auto failing = range_dataset(5).map(fail);
  const auto any = [](const Tensor& /*element*/) { return true; };
  EXPECT_EQ(outcomes_of(failing.batch(3)), "! 3 4 .");
  EXPECT_EQ(outcomes_of(failing.filter(any).batch(3)), "! 3 4 .");
  EXPECT_EQ(outcomes_of(failing.prefetch(2).batch(3)), "! 3 4 .");
  EXPECT_EQ(outcomes_of(range_dataset(5).map(fail, {.parallelism = 3}).batch(3)), "! 3 4 .");
  EXPECT_EQ(outcomes_of(range_dataset(2).concatenate(failing.filter(any)).batch(5)), "! 3 4 .");
  // Rounds of 5, in which 0 and 1 fail: 0 1 2 3 | 4 0 1 2 | 3 4 0 1 | 2 3 4 0 | 1 2 3 4
  EXPECT_EQ(outcomes_of(failing.repeat(4).batch(4)), "! ! ! ! ! .");
  EXPECT_EQ(outcomes_of(failing.prefetch(2).repeat(2).batch(2)), "! 2 3 ! ! 3 4 .");
  const auto each_twice = range_dataset(2).interleave(
      [=](const Tensor& /*element*/) { return failing.filter(any); }, {.cycle_length = 2, .block_length = 3});
  EXPECT_EQ(outcomes_of(each_twice.batch(4)), "! ! 3 4 .");
}

TEST(Repeat, GoesOnWhereAllElementsFail) {
  EXPECT_EQ(outcomes_of(range_dataset(1).map(failing_at(0)).repeat(3)), "! ! ! .");
}

TEST(Unbatch, GivesRows) {
  EXPECT_THAT(pass_of(range_dataset(5).batch(2).unbatch()), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(steps_of(range_dataset(5).batch(2).unbatch().batch(3)), (Steps{{0, 1, 2}, {3, 4}}));
  const auto vectors = Dataset<Tensor>::from_tensors(range(6).reshape({3, 2}));
  EXPECT_EQ(steps_of(vectors.unbatch()), (Steps{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_THAT(pass_of(Dataset<Tensor>::from_tensors(range(0)).repeat(2).unbatch()), IsEmpty());
  EXPECT_THAT([] { return pass_of(range_dataset(2).unbatch()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("no batch axis")));
}

TEST(Prefetch, ChangesNothing) {
  for (const std::int64_t elements : {1, 2, 7}) {
    EXPECT_THAT(pass_of(range_dataset(5).prefetch(elements)), ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(pass_of(range_dataset(0).prefetch(elements)), IsEmpty());
    EXPECT_EQ(steps_of(range_dataset(5).prefetch(elements).batch(2).prefetch(elements)),
              (Steps{{0, 1}, {2, 3}, {4}}));
    EXPECT_EQ(outcomes_of(range_dataset(4).map(failing_at(1)).prefetch(elements)), "0 ! 2 3 .");
  }
  EXPECT_THAT([] { return range_dataset(1).prefetch(0); },
              ThrowsMessage<InvalidArgument>("prefetch(): the number of elements must be at least 1, not 0"));
  EXPECT_THAT(pass_of(range_dataset(2).prefetch(std::int64_t{1} << 20)), ElementsAre(0, 1));
}

TEST(Prefetch, ReadsAheadOnAnotherThreadAndNoFurther) {
  std::atomic<int> read = 0;
  std::set<std::thread::id> threads;  // of one thread at a time
  const auto dataset = watched(read).map([&](const Tensor& element) {
    threads.insert(std::this_thread::get_id());
    return element;
  });
  {
    const auto elements = dataset.prefetch(3).node()->iterate(detail::Pass(0));
    for (int given = 1; given <= 20; ++given) {
      ASSERT_TRUE(elements->next());
      EXPECT_LE(read, given + 3);
    }
  }
  EXPECT_LE(read, 23);
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(Prefetch, ReadsWhileTheConsumerIsBusy) {
  std::latch all_read(3);
  const auto dataset = range_dataset(3).map([&](const Tensor& element) {
    all_read.count_down();
    return element;
  });
  const auto elements = dataset.prefetch(2).node()->iterate(detail::Pass(0));
  EXPECT_TRUE(elements->next());
  all_read.wait();  // the other elements are never asked for
}

void work_for(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) continue;
}

TEST(Prefetch, ReadsWhereItPays) {
  constexpr int kMostElements = 1'000'000;
  std::atomic<bool> slow = false;  // the source, and the consumer
  std::atomic<bool> by_consumer = false;
  std::atomic<bool> saw_a_scope = false;
  std::int64_t elements_read = 0;  // used by the thread that reads
  const auto consumer = std::this_thread::get_id();
  const auto dataset =
      Dataset<Tensor>::from_tensors(Tensor::scalar<std::int64_t>(1)).repeat().map([&](const Tensor& element) {
        if (slow) work_for(std::chrono::microseconds(200));
        by_consumer = std::this_thread::get_id() == consumer;
        if (current_device()) saw_a_scope = true;
        return Tensor::scalar(element.item<std::int64_t>() * elements_read++);
      });
  const DeviceScope scope(Device::cpu(1));
  const auto elements = dataset.prefetch(2).node()->iterate(detail::Pass(0));
  std::int64_t taken = 0;
  const auto take_until = [&](bool consumer_reads) {
    for (int element = 0; element < kMostElements && by_consumer != consumer_reads; ++element) {
      ASSERT_EQ(elements->next()->item<std::int64_t>(), taken++);
      if (slow) work_for(std::chrono::microseconds(200));
    }
    ASSERT_EQ(by_consumer, consumer_reads);
  };
  for (int round = 0; round < 3; ++round) {
    slow = false;
    take_until(true);  // a thread would cost more than it saves
    EXPECT_EQ(elements_read, taken);
    slow = true;
    take_until(false);
  }
  EXPECT_FALSE(saw_a_scope);
}

TEST(Threads, EndWhenTheConsumerStopsEarly) {
  for (int stop = 0; stop < 6; ++stop) {
    for (const auto& dataset :
         {range_dataset(1).repeat().map(twice, {.parallelism = 4}).prefetch(3).map(twice, {.parallelism = 2}),
          range_dataset(4)
              .interleave(
                  [](const Tensor& element) { return Dataset<Tensor>::from_tensors(element).repeat(); },
                  {.cycle_length = 3, .read_ahead = 2})
              .prefetch(2)}) {
      auto elements = dataset.node()->iterate(detail::Pass(0));
      for (int call = 0; call < stop; ++call) ASSERT_TRUE(elements->next());
      elements.reset();
    }
  }
}

TEST(Threads, EndWhenAFunctionAlwaysThrows) {
  const auto fail = [](const Tensor&) -> Tensor { throw std::runtime_error("a bad element"); };
  EXPECT_EQ(outcomes_of(range_dataset(1).repeat().map(fail, {.parallelism = 3}).prefetch(2), 4), "! ! ! ! ");
  const auto no_source = Dataset<Tensor>::from_generator(
      [] { return []() -> std::optional<Tensor> { throw std::runtime_error("a bad element"); }; });
  EXPECT_EQ(outcomes_of(no_source.map(twice, {.parallelism = 3}).prefetch(2), 4), "! ! ! ! ");
}

TEST(Threads, DoNotChangeASeededPipeline) {
  const auto pipeline = [](int parallelism, std::int64_t read_ahead) {
    const auto open = [](const Tensor& element) {
      const auto first = 10 * element.item<std::int64_t>();
      return Dataset<Tensor>::range(first, first + 10).shuffle({.buffer = 4, .seed = 3});
    };
    auto dataset = range_dataset(6)
                       .shuffle({.seed = 1})
                       .interleave(open, {.cycle_length = 3, .block_length = 2, .read_ahead = read_ahead})
                       .map(twice, {.parallelism = parallelism})
                       .shuffle({.buffer = 8, .seed = 2})
                       .batch(7)
                       .repeat(2);
    return read_ahead > 0 ? dataset.prefetch(read_ahead) : dataset;
  };
  const auto plain = pipeline(1, 0);
  const Steps first = steps_of(plain);
  const Steps second = steps_of(plain);
  EXPECT_NE(first, second);
  for (int parallelism = 1; parallelism <= 7; ++parallelism) {
    const auto threaded = pipeline(parallelism, parallelism);
    EXPECT_EQ(steps_of(threaded), first);
    EXPECT_EQ(steps_of(threaded), second);
  }
}

// Numbers that stand for `all` or `no limit`: as long as they only bound something they do, and what takes
// memory or threads for each is refused.
TEST(Parallel, TakesTheLargestNumbersOrSaysWhyNot) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const auto five = range_dataset(5);
  const auto refused = [](const char* what) { return ThrowsMessage<InvalidArgument>(HasSubstr(what)); };
  EXPECT_THAT([&] { return five.prefetch(kLargest); },
              refused("prefetch(): the number of elements must be at most"));
  EXPECT_THAT([&] { return five.map(twice, {.parallelism = std::numeric_limits<int>::max()}); },
              refused("map(): parallelism must be at most"));
  const auto open = [](const Tensor& element) { return Dataset<Tensor>::from_tensors(element); };
  EXPECT_THAT([&] { return five.interleave(open, {.cycle_length = kLargest}); }, refused("cycle_length"));
  EXPECT_THAT([&] { return five.interleave(open, {.read_ahead = kLargest}); }, refused("read_ahead"));
  EXPECT_THAT(pass_of(five.interleave(open, {.block_length = kLargest})), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(pass_of(five.take(kLargest)), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(pass_of(five.skip(kLargest)), IsEmpty());
  EXPECT_EQ(pass_of(five.shuffle({.buffer = kLargest})).size(), 5u);
  EXPECT_EQ(steps_of(five.batch(kLargest)), (Steps{{0, 1, 2, 3, 4}}));
  EXPECT_EQ(steps_of(five.shuffle().batch(kLargest)).size(), 1u);
  EXPECT_THAT(pass_of(five.repeat(kLargest).take(7)), ElementsAre(0, 1, 2, 3, 4, 0, 1));
  std::vector<std::int64_t> numbers;
  for (const auto& [number, element] : range_dataset(2).enumerate(kLargest)) numbers.push_back(number);
  EXPECT_THAT(numbers, ElementsAre(kLargest, std::numeric_limits<std::int64_t>::min()));
}

}  // namespace
}  // namespace cohort::testing
