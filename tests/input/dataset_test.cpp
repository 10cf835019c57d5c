#include <cohort/input/dataset.h>

#include <algorithm>

#include <gmock/gmock.h>

#include "batches.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

/// The first `count` rows of a dataset that may have no end.
Rows first_of(const Dataset<Tensor>& dataset, std::size_t count) {
  Rows rows;
  for (const Tensor& element : dataset) {
    const Rows values = elements_of(element);
    rows.insert(rows.end(), values.begin(), values.end());
    if (rows.size() >= count) break;
  }
  return rows;
}

TEST(FromTensorSlices, GivesOneElementPerRowWithoutACopy) {
  const Tensor matrix = range(6).reshape({3, 2});
  std::int64_t row = 0;
  for (const Tensor& element : Dataset<Tensor>::from_tensor_slices(matrix)) {
    EXPECT_EQ(element.data(), matrix.row(row++).data());
    EXPECT_EQ(element.shape(), Shape{2});
  }
  EXPECT_EQ(row, 3);
}

TEST(FromTensorSlices, KeepsTheRowsOfAStructureTogether) {
  const auto dataset = Dataset<Example>::from_tensor_slices({range(6).reshape({3, 2}), range(3)});
  std::int64_t row = 0;
  for (const Example& example : dataset) {
    EXPECT_THAT(elements_of(example.image), ElementsAre(2 * row, 2 * row + 1));
    EXPECT_THAT(elements_of(example.label), ElementsAre(row));
    ++row;
  }
  EXPECT_EQ(row, 3);
}

TEST(FromTensorSlices, RefusesTensorsThatDifferInRows) {
  EXPECT_THAT(
      ([] {
        return Dataset<Example>::from_tensor_slices({range(6).reshape({3, 2}), range(4)});
      }),
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("differ in rows: 3 and 4"), HasSubstr("int64[4]"))));
  EXPECT_THROW(static_cast<void>(Dataset<Tensor>::from_tensor_slices(Tensor::scalar(1.0))), InvalidArgument);
  EXPECT_THROW(static_cast<void>(Dataset<std::vector<Tensor>>::from_tensor_slices({})), InvalidArgument);
}

TEST(FromTensorSlices, MayHaveNoRows) { EXPECT_THAT(steps_of(range_dataset(0)), IsEmpty()); }

TEST(Dataset, StartsFromTheBeginningInEachPass) {
  const auto dataset = range_dataset(5).batch(2);
  EXPECT_EQ(steps_of(dataset), (Steps{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(steps_of(dataset), (Steps{{0, 1}, {2, 3}, {4}}));
}

TEST(Dataset, StaysAtItsEnd) {
  for (const auto& dataset : {range_dataset(2), range_dataset(2).batch(3), range_dataset(2).repeat(2),
                              range_dataset(2).shuffle(), range_dataset(0).repeat()}) {
    const auto elements = dataset.node()->iterate(detail::Pass(0));
    while (elements->next()) {
    }
    for (int again = 0; again < 3; ++again) EXPECT_FALSE(elements->next());
  }
}

TEST(Dataset, LeavesTheOneItWasMadeFromAlone) {
  const auto dataset = range_dataset(3);
  static_cast<void>(dataset.shuffle().batch(2).repeat(4));
  EXPECT_THAT(pass_of(dataset), ElementsAre(0, 1, 2));
}

TEST(Batch, StacksElements) {
  EXPECT_EQ(steps_of(range_dataset(7).batch(3)), (Steps{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(steps_of(range_dataset(6).batch(3)), (Steps{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(steps_of(range_dataset(2).batch(5)), (Steps{{0, 1}}));
  EXPECT_THAT(steps_of(range_dataset(0).batch(5)), IsEmpty());
}

TEST(Batch, DropsARemainderOnRequest) {
  EXPECT_EQ(steps_of(range_dataset(7).batch(3, true)), (Steps{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(steps_of(range_dataset(6).batch(3, true)), (Steps{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_THAT(steps_of(range_dataset(2).batch(5, true)), IsEmpty());
}

TEST(Batch, StacksEveryTensorOfAStructure) {
  for (const Example& batch :
       Dataset<Example>::from_tensor_slices({range(8).reshape({4, 2}), range(4)}).batch(4)) {
    EXPECT_EQ(batch.image.shape(), (Shape{4, 2}));
    EXPECT_THAT(elements_of(batch.image), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    EXPECT_EQ(batch.label.shape(), Shape{4});
  }
}

TEST(Batch, OfBatchesHasTwoMoreAxes) {
  for (const Tensor& batch : range_dataset(6).batch(3).batch(2)) EXPECT_EQ(batch.shape(), (Shape{2, 3}));
}

TEST(Batch, OfRowsInMemoryIsAView) {
  const Tensor rows = range(6);
  for (const Tensor& batch : Dataset<Tensor>::from_tensor_slices(rows).skip(2).take(4).batch(3).take(1)) {
    EXPECT_EQ(batch.data(), rows.row(2).data());
  }
}

TEST(Batch, RefusesElementsOfDifferentShapes) {
  const auto growing =
      range_dataset(3).map([](const Tensor& element) { return range(element.item<std::int64_t>()); });
  EXPECT_THAT(
      [&] { return steps_of(growing.batch(2)); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("int64[1] (row 1)"), HasSubstr("int64[0] (row 0)"))));
}

TEST(Structures, StayTogetherInEveryStage) {
  const auto examples = Dataset<Example>::from_tensor_slices({range(40).reshape({20, 2}), range(20)});
  const auto same = [](const Example& example) { return example; };
  const auto all = [](const Example&) { return true; };
  const auto dataset =
      examples.shuffle({.seed = 1})
          .map(same, {.parallelism = 2})
          .shuffle({.buffer = 4})
          .filter(all)
          .cache()
          .batch(3)
          .prefetch(2)
          .unbatch()
          .interleave([](const Example& example) { return Dataset<Example>::from_tensors(example); },
                      {.cycle_length = 2, .read_ahead = 1})
          .concatenate(examples.take(2).skip(1))
          .repeat(2)
          .batch(5);
  std::int64_t rows = 0;
  for (const Example& batch : dataset) {
    rows += rows_of(batch);
    for (std::int64_t row = 0; row < rows_of(batch); ++row) {
      EXPECT_EQ(batch.image.row(row).row(0).item<std::int64_t>(),
                2 * batch.label.row(row).item<std::int64_t>());
    }
  }
  EXPECT_EQ(rows, 42);
}

TEST(Batch, NeedsASize) {
  for (const std::int64_t size : {0, -1}) {
    EXPECT_THAT([&] { return range_dataset(3).batch(size); },
                ThrowsMessage<InvalidArgument>(HasSubstr("at least 1")));
  }
}

TEST(Repeat, GivesTheDatasetSoManyTimes) {
  EXPECT_THAT(pass_of(range_dataset(3).repeat(0)), IsEmpty());
  EXPECT_THAT(pass_of(range_dataset(3).repeat(1)), ElementsAre(0, 1, 2));
  EXPECT_THAT(pass_of(range_dataset(3).repeat(2)), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(pass_of(range_dataset(2).repeat(2).repeat(2)), SizeIs(8));
}

TEST(Repeat, WithoutACountNeverEnds) {
  EXPECT_THAT(first_of(range_dataset(3).repeat(), 8), ElementsAre(0, 1, 2, 0, 1, 2, 0, 1));
}

TEST(Repeat, OfNothingIsNothing) {
  EXPECT_THAT(pass_of(range_dataset(0).repeat()), IsEmpty());
  EXPECT_THAT(pass_of(range_dataset(0).repeat(3)), IsEmpty());
  EXPECT_THAT(pass_of(range_dataset(2).batch(5, true).repeat()), IsEmpty());
}

TEST(Repeat, RefusesANegativeCount) {
  EXPECT_THAT([] { return range_dataset(3).repeat(-1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("leave it out to repeat for ever")));
}

TEST(Repeat, BeforeOrAfterBatchMakesADifference) {
  EXPECT_EQ(steps_of(range_dataset(5).batch(4).repeat(2)), (Steps{{0, 1, 2, 3}, {4}, {0, 1, 2, 3}, {4}}));
  EXPECT_EQ(steps_of(range_dataset(5).repeat(2).batch(4)), (Steps{{0, 1, 2, 3}, {4, 0, 1, 2}, {3, 4}}));
}

TEST(Shuffle, GivesEveryElementOnce) {
  Rows rows = pass_of(range_dataset(100).shuffle({.seed = 3}));
  EXPECT_NE(rows, elements_of(range(100)));
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(rows, elements_of(range(100)));
}

TEST(Shuffle, DependsOnTheSeedAlone) {
  const auto order = [](std::uint64_t seed) { return pass_of(range_dataset(50).shuffle({.seed = seed})); };
  EXPECT_EQ(order(7), order(7));
  EXPECT_NE(order(7), order(8));
  EXPECT_NE(order(7), order(7 + (std::uint64_t{1} << 32))) << "all 64 bits of the seed count";
}

TEST(Shuffle, IsTheSameOnEveryMachine) {
  EXPECT_THAT(pass_of(range_dataset(8).shuffle({.seed = 1})), ElementsAre(4, 1, 3, 2, 5, 0, 6, 7));
}

TEST(Shuffle, GivesEachPassAnotherOrderUnlessToldOtherwise) {
  const auto again = range_dataset(50).shuffle({.seed = 7});
  const Rows first = pass_of(again);
  const Rows second = pass_of(again);
  EXPECT_NE(first, second);
  const auto repeated = pass_of(range_dataset(50).shuffle({.seed = 7}).repeat(2));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), repeated.begin()));
  EXPECT_TRUE(std::equal(second.begin(), second.end(), repeated.begin() + 50)) << "the same passes, in a row";

  const auto same = range_dataset(50).shuffle({.seed = 7, .reshuffle_each_iteration = false});
  EXPECT_EQ(pass_of(same), first);
  EXPECT_EQ(pass_of(same), first);
}

TEST(Shuffle, OfNothingOrOneElementIsThat) {
  EXPECT_THAT(pass_of(range_dataset(0).shuffle()), IsEmpty());
  EXPECT_THAT(pass_of(range_dataset(1).shuffle()), ElementsAre(0));
}

TEST(Shuffle, NeedsADatasetThatEnds) {
  const auto endless = range_dataset(3).repeat();
  for (const auto& dataset : {endless, endless.batch(2), endless.repeat(2)}) {
    EXPECT_THAT([&] { return dataset.shuffle(); },
                ThrowsMessage<InvalidArgument>(HasSubstr("shuffle before repeat")));
  }
  EXPECT_THAT(pass_of(range_dataset(3).repeat(2).shuffle()), SizeIs(6));
  EXPECT_THAT(pass_of(endless.repeat(0).shuffle()), IsEmpty());
}

TEST(Shuffle, MovesEveryElementEverywhere) {
  // 8 elements, 4000 orders: each element stands in each place about 500 times.
  std::vector<int> counts(64);
  const auto dataset = range_dataset(8).shuffle({.seed = 5});
  for (int pass = 0; pass < 4000; ++pass) {
    std::size_t place = 0;
    for (const std::int64_t element : pass_of(dataset))
      ++counts[8 * place++ + static_cast<std::size_t>(element)];
  }
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 400);
  EXPECT_LT(*std::max_element(counts.begin(), counts.end()), 600);
}

TEST(Shuffle, HoldsNoMoreThanItsBuffer) {
  constexpr std::int64_t kBuffer = 5;
  std::int64_t read = 0;
  const auto source = range_dataset(40).map([&read](const Tensor& element) {
    ++read;
    return element;
  });
  std::int64_t given = 0;
  Rows rows;
  for (const Tensor& element : source.shuffle({.buffer = kBuffer, .seed = 3})) {
    EXPECT_LE(read, given + kBuffer);
    EXPECT_LT(element.item<std::int64_t>(), given + kBuffer) << "from among those that were read";
    rows.push_back(element.item<std::int64_t>());
    ++given;
  }
  EXPECT_NE(rows, elements_of(range(40)));
  EXPECT_EQ(rows, pass_of(range_dataset(40).shuffle({.buffer = kBuffer, .seed = 3})))
      << "of rows in memory, too";
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(rows, elements_of(range(40)));
}

TEST(Shuffle, WithABufferOfOneChangesNothing) {
  EXPECT_THAT(pass_of(range_dataset(4).shuffle({.buffer = 1})), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(first_of(range_dataset(2).repeat().shuffle({.buffer = 1}), 5), ElementsAre(0, 1, 0, 1, 0));
  for (const std::int64_t buffer : {0, -1}) {
    EXPECT_THAT([&] { return range_dataset(3).shuffle({.buffer = buffer}); },
                ThrowsMessage<InvalidArgument>(HasSubstr("at least 1")));
  }
}

TEST(Shuffle, KeepsTheTensorsOfAnElementTogether) {
  for (const Example& example :
       Dataset<Example>::from_tensor_slices({range(20).reshape({10, 2}), range(10)}).shuffle({.seed = 2})) {
    EXPECT_EQ(example.image.row(0).item<std::int64_t>(), 2 * example.label.item<std::int64_t>());
  }
}

}  // namespace
}  // namespace cohort::testing
