// Which elements come, and in which order: take, skip, shard, concatenate, zip, interleave.
#include <gmock/gmock.h>

#include "batches.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

TEST(Take, GivesTheFirstElements) {
  EXPECT_THAT(pass_of(range_dataset(5).take(3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(pass_of(range_dataset(2).take(3)), ElementsAre(0, 1));
  EXPECT_THAT(pass_of(range_dataset(2).take(0)), IsEmpty());
  EXPECT_THAT(pass_of(range_dataset(2).repeat().take(5)), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_EQ(steps_of(range_dataset(9).take(5).batch(3)), (Steps{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(steps_of(range_dataset(9).batch(3).take(2)), (Steps{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_THAT([] { return range_dataset(2).take(-1); },
              ThrowsMessage<InvalidArgument>(
                  "take(-1): the count must not be negative; leave take() out to get all elements"));
}

TEST(Take, ReadsNoFurther) { EXPECT_EQ(outcomes_of(range_dataset(5).map(failing_at(2)).take(2)), "0 1 ."); }

TEST(Skip, LeavesTheFirstElementsOut) {
  EXPECT_THAT(pass_of(range_dataset(5).skip(3)), ElementsAre(3, 4));
  EXPECT_THAT(pass_of(range_dataset(2).skip(2)), IsEmpty());
  EXPECT_THAT(pass_of(range_dataset(2).skip(9)), IsEmpty());
  EXPECT_THAT(pass_of(counted_dataset(4).skip(3)), ElementsAre(3));
  EXPECT_THAT(pass_of(range_dataset(5).skip(2).take(2)), ElementsAre(2, 3));
  EXPECT_EQ(steps_of(range_dataset(9).skip(4).batch(3)), (Steps{{4, 5, 6}, {7, 8}}));
  EXPECT_THAT([] { return range_dataset(2).skip(-1); },
              ThrowsMessage<InvalidArgument>("skip(-1): the count must not be negative"));
}

TEST(Sharding, DealsElementsOutInTurn) {
  EXPECT_THAT(pass_of(range_dataset(5).shard({2, 0})), ElementsAre(0, 2, 4));
  EXPECT_THAT(pass_of(range_dataset(5).shard({2, 1})), ElementsAre(1, 3));
  EXPECT_THAT(pass_of(range_dataset(5).shard({3, 2})), ElementsAre(2));
  EXPECT_THAT(pass_of(range_dataset(5).shard({1, 0})), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(pass_of(range_dataset(2).shard({4, 3})), IsEmpty()) << "a part may be empty";
  EXPECT_EQ(steps_of(range_dataset(10).batch(2).shard({3, 1})), (Steps{{2, 3}, {8, 9}}));
  EXPECT_EQ(steps_of(range_dataset(10).shard({3, 1}).batch(2)), (Steps{{1, 4}, {7}}));
}

TEST(Sharding, LeavesItsElementsWhereTheyAreWhenOneFails) {
  EXPECT_EQ(outcomes_of(range_dataset(7).map(failing_at(1)).shard({3, 1})), "! 4 .");
  EXPECT_EQ(outcomes_of(range_dataset(9).map(failing_at(4)).shard({3, 1})), "1 ! 7 .");
  const auto hinted = range_dataset(7).map(failing_at(0)).shard(Shard::hint());
  EXPECT_EQ(outcomes_of(Dataset<Tensor>(hinted.node()->with_hints_as({3, 0}))), "! 3 6 .");
}

TEST(Sharding, RefusesWhatIsNoShard) {
  for (const Shard shard : {Shard{0, 0}, Shard{-1, 0}, Shard{2, 2}, Shard{2, -1}}) {
    EXPECT_THROW(static_cast<void>(range_dataset(3).shard(shard)), InvalidArgument);
  }
}

TEST(Sharding, LeavesAHintToTheStrategy) {
  const auto hinted = range_dataset(5).shard(Shard::hint()).batch(2);
  EXPECT_THAT([&] { static_cast<void>(hinted.begin()); },
              ThrowsMessage<WrongContext>(HasSubstr("AutoShardPolicy::kHint")));
  EXPECT_EQ(steps_of(Dataset<Tensor>(hinted.node()->with_hints_as({2, 1}))), (Steps{{1, 3}}));
  EXPECT_FALSE(range_dataset(5).shard({2, 0}).batch(2).node()->with_hints_as({2, 1}));
}

TEST(Sharding, FillsInEveryHint) {
  const auto hinted = range_dataset(8).shard(Shard::hint());
  const auto filled = [](const Dataset<Tensor>& dataset) {
    return pass_of(Dataset<Tensor>(dataset.node()->with_hints_as({2, 1})));
  };
  EXPECT_THAT(filled(hinted.shard(Shard::hint())), ElementsAre(3, 7));
  EXPECT_THAT(filled(hinted.take(1).concatenate(range_dataset(2))), ElementsAre(1, 0, 1));
  EXPECT_THAT(filled(range_dataset(2).concatenate(hinted.take(1))), ElementsAre(0, 1, 1));
  EXPECT_THAT(filled(zip(hinted, range_dataset(2)).map([](const auto& both) { return std::get<0>(both); })),
              ElementsAre(1, 3));
  EXPECT_FALSE(zip(range_dataset(2), range_dataset(2)).node()->with_hints_as({2, 1}));
}

TEST(Sharding, CanDemandAnElementForEach) {
  for (const bool counted : {false, true}) {
    const auto part = [&](std::int64_t elements, Shard shard) {
      const auto whole = counted ? counted_dataset(elements) : range_dataset(elements);
      return Dataset<Tensor>(whole.shard(Shard::hint()).node()->with_hints_as(shard));
    };
    for (int index = 0; index < 3; ++index) {
      EXPECT_THAT(
          [&] {
            return pass_of(part(2, {3, index}));
          },
          ThrowsMessage<InvalidArgument>(
              AllOf(HasSubstr("2 elements (found)"), HasSubstr("3 shards (required)"))))
          << "also for the part that has one";
      EXPECT_THAT(pass_of(part(0, {3, index})), IsEmpty());
      EXPECT_THAT(pass_of(part(3, {3, index})), ElementsAre(index));
      const auto late = part(7, {3, index}).begin_at({.elements = 1});
      EXPECT_EQ((*late).item<std::int64_t>(), index + 3);
    }
    EXPECT_THAT(pass_of(part(7, {3, 0})), ElementsAre(0, 3, 6));
  }
}

TEST(Concatenate, GivesOneAfterTheOther) {
  EXPECT_THAT(pass_of(range_dataset(2).concatenate(range_dataset(3))), ElementsAre(0, 1, 0, 1, 2));
  EXPECT_THAT(pass_of(range_dataset(0).concatenate(counted_dataset(1))), ElementsAre(0));
  EXPECT_THAT(pass_of(counted_dataset(1).concatenate(range_dataset(0))), ElementsAre(0));
  EXPECT_EQ(steps_of(range_dataset(2).concatenate(range_dataset(3)).batch(4)), (Steps{{0, 1, 0, 1}, {2}}));
  EXPECT_EQ(steps_of(range_dataset(2).batch(2).concatenate(range_dataset(3).batch(2))),
            (Steps{{0, 1}, {0, 1}, {2}}));
}

TEST(Zip, PutsElementsSideBySideUpToTheShortest) {
  const auto zipped = zip(range_dataset(3), Dataset<Tensor>::range(10, 20), counted_dataset(2));
  Rows rows;
  for (const auto& [a, b, c] : zipped) {
    for (const Tensor& tensor : {a, b, c}) rows.push_back(tensor.item<std::int64_t>());
  }
  EXPECT_THAT(rows, ElementsAre(0, 10, 0, 1, 11, 1));
}

TEST(Zip, GivesElementsThatCanBeBatched) {
  Steps steps;
  for (const auto& [a, b] : zip(range_dataset(3), Dataset<Tensor>::range(10, 20)).batch(2)) {
    steps.push_back(elements_of(a));
    steps.push_back(elements_of(b));
  }
  EXPECT_EQ(steps, (Steps{{0, 1}, {10, 11}, {2}, {12}}));
}

TEST(Zip, KeepsElementsTogetherBehindAnError) {
  const auto zipped = zip(range_dataset(4).map(failing_at(1)), range_dataset(4)).map([](const auto& both) {
    EXPECT_EQ(std::get<0>(both).template item<int>(), std::get<1>(both).template item<int>());
    return std::get<0>(both);
  });
  EXPECT_EQ(outcomes_of(zipped), "0 ! 2 3 .");
}

TEST(Enumerate, NumbersElements) {
  Rows rows;
  for (const auto& [number, element] : Dataset<Tensor>::range(5, 7).enumerate(3)) {
    rows.push_back(number);
    rows.push_back(element.item<std::int64_t>());
  }
  EXPECT_THAT(rows, ElementsAre(3, 5, 4, 6));
}

/// `count` times the element.
auto repeated(std::int64_t count) {
  return [count](const Tensor& element) { return Dataset<Tensor>::from_tensors(element).repeat(count); };
}

TEST(Interleave, TakesBlocksInTurn) {
  const auto numbers = Dataset<Tensor>::range(1, 6);
  for (const std::int64_t read_ahead : {0, 1, 3}) {
    EXPECT_THAT(pass_of(numbers.interleave(repeated(6), {2, 4, read_ahead})),
                ElementsAre(1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5,
                            5, 5, 5));
    EXPECT_THAT(pass_of(numbers.interleave(repeated(2), {.cycle_length = 1, .read_ahead = read_ahead})),
                ElementsAre(1, 1, 2, 2, 3, 3, 4, 4, 5, 5));
    EXPECT_THAT(pass_of(numbers.interleave(repeated(2), {.cycle_length = 9, .read_ahead = read_ahead})),
                ElementsAre(1, 2, 3, 4, 5, 1, 2, 3, 4, 5));
  }
}

TEST(Interleave, PassesOverEmptyDatasets) {
  const auto as_many = [](const Tensor& element) {
    return Dataset<Tensor>::range(element.item<std::int64_t>());
  };
  for (std::int64_t cycle = 1; cycle < 6; ++cycle) {
    const Rows rows = pass_of(range_dataset(4).interleave(as_many, {.cycle_length = cycle}));
    EXPECT_THAT(rows, ::testing::UnorderedElementsAre(0, 0, 1, 0, 1, 2)) << cycle;
  }
  EXPECT_THAT(pass_of(range_dataset(3).interleave(repeated(0), {.cycle_length = 2})), IsEmpty());
  EXPECT_THAT(pass_of(range_dataset(0).interleave(repeated(1))), IsEmpty());
}

TEST(Interleave, OpensNoMoreThanItsCycle) {
  int opened = 0;
  const auto open = [&opened](const Tensor& element) {
    ++opened;
    return Dataset<Tensor>::from_tensors(element).repeat();
  };
  const auto endless = range_dataset(1).repeat().interleave(open, {.cycle_length = 3}).take(20);
  EXPECT_EQ(pass_of(endless).size(), 20u);
  EXPECT_EQ(opened, 3);
}

TEST(Interleave, GoesOnBehindErrors) {
  const auto open = [](const Tensor& element) {
    static_cast<void>(failing_at(1)(element));
    return Dataset<Tensor>::from_tensors(element).repeat(2).map(failing_at(2));
  };
  EXPECT_EQ(outcomes_of(range_dataset(4).interleave(open)), "0 0 ! ! ! 3 3 .");
}

TEST(Interleave, ShufflesEachDatasetDifferently) {
  const auto shuffled = [](const Tensor&) { return Dataset<Tensor>::range(20).shuffle({.seed = 1}); };
  const Steps orders = steps_of(range_dataset(2).interleave(shuffled).batch(20));
  EXPECT_NE(orders[0], orders[1]);
}

TEST(Interleave, NeedsACycleAndABlock) {
  for (const InterleaveOptions options : {InterleaveOptions{0, 1, 0}, {1, 0, 0}, {1, 1, -1}}) {
    EXPECT_THROW(static_cast<void>(range_dataset(1).interleave(repeated(1), options)), InvalidArgument);
  }
}

TEST(Cardinalities, AreWhatAPassGives) {
  const auto known = range_dataset(7);
  const auto endless = known.repeat();
  for (const auto& dataset : {known, known.take(3), known.take(9), known.skip(2), known.skip(9),
                              known.shard({3, 0}), known.shard({3, 1}), known.batch(3), known.batch(3, true),
                              known.repeat(2), known.repeat(0), known.concatenate(known), endless.take(5),
                              known.shuffle(), known.prefetch(2), known.cache(), known.map(failing_at(-1)),
                              zip(known, endless).map([](const auto& both) { return std::get<0>(both); })}) {
    EXPECT_EQ(dataset.cardinality(), Cardinality::of(static_cast<std::int64_t>(steps_of(dataset).size())));
  }
  for (const auto& dataset : {endless, endless.batch(2), endless.skip(3), known.concatenate(endless),
                              endless.shard({2, 1}), known.repeat(std::int64_t{1} << 62)}) {
    EXPECT_EQ(dataset.cardinality(), Cardinality::infinite());
  }
  const auto counted = counted_dataset(3);
  for (const auto& dataset :
       {counted, counted.take(2), counted.skip(2), known.filter([](const Tensor&) { return true; }),
        known.batch(2).unbatch(), known.concatenate(counted), counted.repeat(2)}) {
    EXPECT_EQ(dataset.cardinality(), Cardinality::unknown());
  }
}

TEST(BatchSizes, AreKnownWhereNothingChangesThem) {
  const auto batched = range_dataset(20).batch(4);
  const auto same = [](const Tensor& batch) { return batch; };
  for (const auto& dataset :
       {batched, batched.prefetch(2), batched.take(3).skip(1), batched.shuffle(), batched.cache(),
        batched.repeat(), batched.filter([](const Tensor&) { return true; }), batched.shard({2, 0}),
        batched.concatenate(batched)}) {
    EXPECT_EQ(dataset.node()->batch_size(), detail::BatchSize{4});
  }
  EXPECT_EQ(batched.batch(2).node()->batch_size(), detail::BatchSize{2});
  EXPECT_EQ(zip(batched, batched).node()->batch_size(), detail::BatchSize{4});
  EXPECT_EQ(zip(batched, range_dataset(20).batch(5)).node()->batch_size(), std::nullopt);
  for (const auto& dataset : {range_dataset(4), batched.map(same), batched.unbatch(),
                              batched.concatenate(range_dataset(2).batch(2)),
                              range_dataset(2).interleave([&](const Tensor&) { return batched.take(1); })}) {
    EXPECT_EQ(dataset.node()->batch_size(), std::nullopt);
  }
}

}  // namespace
}  // namespace cohort::testing
