// Datasets distributed among the replicas of one process.
#include <cohort/input/distribute.h>

#include <gmock/gmock.h>

#include <cohort/strategy/mirrored_strategy.h>

#include "batches.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

PartSteps parts_of_dataset(const Strategy& strategy, const Dataset<Tensor>& dataset) {
  return testing::parts_of(strategy.distribute_dataset(dataset));
}

PartSteps parts_of_range(int replicas, std::int64_t rows, std::int64_t batch, bool drop_remainder = false) {
  return parts_of_dataset(MirroredStrategy(cpu_devices(replicas)),
                          range_dataset(rows).batch(batch, drop_remainder));
}

TEST(Distribute, GivesASingleReplicaTheBatches) {
  EXPECT_EQ(parts_of_range(1, 5, 2), (PartSteps{{{0, 1}}, {{2, 3}}, {{4}}}));
}

TEST(Distribute, SplitsBatchesBetweenTwoReplicas) {
  EXPECT_EQ(parts_of_range(2, 10, 4), (PartSteps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8}, {9}}}));
  EXPECT_EQ(parts_of_range(2, 7, 4), (PartSteps{{{0, 1}, {2, 3}}, {{4, 5}, {6}}}));
  EXPECT_EQ(parts_of_range(2, 10, 3, true), (PartSteps{{{0, 1}, {2}}, {{3, 4}, {5}}, {{6, 7}, {8}}}));
  EXPECT_EQ(parts_of_range(2, 13, 5),
            (PartSteps{{{0, 1, 2}, {3, 4}}, {{5, 6, 7}, {8, 9}}, {{10, 11}, {12}}}));
  EXPECT_EQ(parts_of_range(2, 8, 8), (PartSteps{{{0, 1, 2, 3}, {4, 5, 6, 7}}}));
}

TEST(Distribute, SplitsBatchesAmongThreeReplicas) {
  EXPECT_EQ(parts_of_range(3, 8, 4), (PartSteps{{{0, 1}, {2}, {3}}, {{4, 5}, {6}, {7}}})) << "nobody idle";
  EXPECT_EQ(parts_of_range(3, 7, 4), (PartSteps{{{0, 1}, {2}, {3}}, {{4}, {5}, {6}}}));
  EXPECT_EQ(parts_of_range(3, 8, 8), (PartSteps{{{0, 1, 2}, {3, 4, 5}, {6, 7}}}));
  EXPECT_EQ(parts_of_range(3, 12, 6, true),
            (PartSteps{{{0, 1}, {2, 3}, {4, 5}}, {{6, 7}, {8, 9}, {10, 11}}}));
  EXPECT_EQ(parts_of_range(3, 13, 5),
            (PartSteps{{{0, 1}, {2, 3}, {4}}, {{5, 6}, {7, 8}, {9}}, {{10}, {11}, {12}}}));
}

TEST(Distribute, SplitsBatchesAmongFourReplicas) {
  EXPECT_EQ(parts_of_range(4, 12, 6), (PartSteps{{{0, 1}, {2, 3}, {4}, {5}}, {{6, 7}, {8, 9}, {10}, {11}}}));
}

TEST(Distribute, GivesReplicasEmptyPartsWhenRowsAreFew) {
  EXPECT_EQ(parts_of_range(2, 9, 2), (PartSteps{{{0}, {1}}, {{2}, {3}}, {{4}, {5}}, {{6}, {7}}, {{8}, {}}}));
  EXPECT_EQ(parts_of_range(3, 3, 1), (PartSteps{{{0}, {}, {}}, {{1}, {}, {}}, {{2}, {}, {}}}));
  EXPECT_EQ(parts_of_range(4, 1, 4), (PartSteps{{{0}, {}, {}, {}}}));
}

TEST(Distribute, DropsOrKeepsTheLastBatchLikeTheDataset) {
  for (const int replicas : {1, 2, 3, 4}) {
    EXPECT_THAT(parts_of_range(replicas, 10, 4, true), SizeIs(2));
    EXPECT_THAT(parts_of_range(replicas, 10, 4, false), SizeIs(3));
    EXPECT_THAT(parts_of_range(replicas, 1, 4, true), IsEmpty());
    EXPECT_THAT(parts_of_range(replicas, 0, 4, true), IsEmpty());
    EXPECT_THAT(parts_of_range(replicas, 0, 4, false), IsEmpty());
  }
}

TEST(Distribute, FollowsWhatStandsBeforeAndAfterTheBatch) {
  const MirroredStrategy strategy(cpu_devices(3));
  EXPECT_EQ(parts_of_dataset(strategy, range_dataset(5).batch(4).repeat(2)),
            (PartSteps{{{0, 1}, {2}, {3}}, {{4}, {}, {}}, {{0, 1}, {2}, {3}}, {{4}, {}, {}}}));
  EXPECT_EQ(parts_of_dataset(strategy, range_dataset(5).repeat(2).batch(4)),
            (PartSteps{{{0, 1}, {2}, {3}}, {{4, 0}, {1}, {2}}, {{3}, {4}, {}}}));
  const auto shuffled = [] { return range_dataset(9).shuffle({.seed = 4}).batch(4); };
  Rows dealt;
  for (const Steps& step : parts_of_dataset(strategy, shuffled())) {
    for (const Rows& part : step) dealt.insert(dealt.end(), part.begin(), part.end());
  }
  EXPECT_EQ(dealt, pass_of(shuffled())) << "the parts of a step are its batch, in order";
}

TEST(Distribute, SplitsADatasetThatOffersBatchesOfItsOwn) {
  // Rows that are vectors are batches, even without batch().
  const auto vectors = Dataset<Tensor>::from_tensor_slices(range(12).reshape({3, 4}));
  EXPECT_EQ(parts_of_dataset(MirroredStrategy(cpu_devices(2)), vectors),
            (PartSteps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8, 9}, {10, 11}}}));
}

TEST(Distribute, SplitsEveryTensorOfAStructureAlike) {
  const MirroredStrategy strategy(cpu_devices(3));
  const auto dataset = Dataset<Example>::from_tensor_slices({range(10).reshape({5, 2}), range(5)}).batch(4);
  std::vector<Shape> images;
  for (const auto& batch : strategy.distribute_dataset(dataset)) {
    for (const Example& part : batch.components()) {
      images.push_back(part.image.shape());
      ASSERT_EQ(part.image.shape()[0], part.label.shape()[0]);
      for (std::int64_t row = 0; row < part.label.shape()[0]; ++row) {
        EXPECT_EQ(part.image.row(row).row(0).item<int>(), 2 * part.label.row(row).item<int>());
      }
    }
  }
  EXPECT_THAT(images,
              ElementsAre(Shape{2, 2}, Shape{1, 2}, Shape{1, 2}, Shape{1, 2}, Shape{0, 2}, Shape{0, 2}))
      << "empty parts keep the shape of their rows";
}

TEST(Distribute, GivesEmptyPartsTheDtypeOfTheirRows) {
  const MirroredStrategy strategy(cpu_devices(3));
  for (const DType dtype : kAllDTypes) {
    for (const auto& batch : strategy.distribute_dataset(
             Dataset<Tensor>::from_tensor_slices(Tensor::zeros({1, 2}, dtype)).batch(2))) {
      EXPECT_EQ(batch[2].dtype(), dtype);
      EXPECT_EQ(batch[2].shape(), (Shape{0, 2}));
    }
  }
}

TEST(Distribute, StartsFromTheBeginningInEachPass) {
  const MirroredStrategy strategy(cpu_devices(2));
  const auto distributed = strategy.distribute_dataset(range_dataset(4).batch(4));
  for (int pass = 0; pass < 2; ++pass) {
    int steps = 0;
    for (const auto& batch : distributed) {
      EXPECT_THAT(elements_of(batch[0]), ElementsAre(0, 1));
      ++steps;
    }
    EXPECT_EQ(steps, 1);
  }
}

TEST(Distribute, FeedsTheReplicas) {
  const MirroredStrategy strategy(cpu_devices(3));
  std::vector<double> sums;
  std::vector<double> means;
  const auto scope = strategy.scope();
  for (const auto& batch : strategy.distribute_dataset(range_dataset(9).batch(4))) {
    const auto doubled = strategy.run([](const Tensor& mine) { return mine.cast(DType::kFloat64); }, batch);
    sums.push_back(strategy.reduce(ReduceOp::kSum, doubled, 0).item<double>());
    means.push_back(strategy.reduce(ReduceOp::kMean, doubled, 0).item<double>());
  }
  EXPECT_THAT(sums, ElementsAre(6, 22, 8));
  EXPECT_THAT(means, ElementsAre(1.5, 5.5, 8));
}

TEST(Distribute, NeedsElementsWithABatchAxisToSplitThem) {
  const MirroredStrategy strategy(cpu_devices(3));
  EXPECT_THAT([&] { return parts_of_dataset(strategy, range_dataset(5)); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("no batch axis"), HasSubstr("add batch()"))));
  EXPECT_EQ(parts_of_dataset(MirroredStrategy(cpu_devices(1)), range_dataset(2)), (PartSteps{{{0}}, {{1}}}))
      << "a single replica gets the elements as they are";
}

TEST(Distribute, GivesStepByStep) {
  const MirroredStrategy strategy(cpu_devices(2));
  const auto distributed = strategy.distribute_dataset(range_dataset(6).batch(4));
  auto steps = distributed.iterate();
  EXPECT_EQ(rows_by_replica(steps.get_next()), (Steps{{0, 1}, {2, 3}}));
  EXPECT_EQ(steps.position(), (DatasetPosition{.pass = 0, .elements = 1}));
  const auto last = steps.get_next_as_optional();
  ASSERT_TRUE(last);
  EXPECT_EQ(rows_by_replica(*last), (Steps{{4}, {5}}));
  for (int again = 0; again < 2; ++again) {
    EXPECT_FALSE(steps.get_next_as_optional());
    EXPECT_THAT([&] { return steps.get_next(); }, ThrowsMessage<OutOfRange>(HasSubstr("after 2 steps")));
  }
}

TEST(Distribute, CountsAStepThatFailed) {
  const MirroredStrategy strategy(cpu_devices(2));
  const auto dataset = range_dataset(12).map(failing_at(5));
  const auto batches = strategy.distribute_dataset(dataset.batch(4));
  const auto in_turn =
      strategy.distribute_datasets_from_function([&](const InputContext&) { return dataset.batch(2); });
  for (const auto& distributed : {batches, in_turn}) {
    auto steps = distributed.iterate();
    EXPECT_EQ(rows_by_replica(steps.get_next()), (Steps{{0, 1}, {2, 3}}));
    EXPECT_THROW(static_cast<void>(steps.get_next()), std::runtime_error);
    EXPECT_EQ(steps.position().elements, 2);
    EXPECT_EQ(rows_by_replica(steps.get_next()), (Steps{{8, 9}, {10, 11}}));
    EXPECT_EQ(rows_by_replica(*distributed.begin_at({.pass = 0, .elements = 2})), (Steps{{8, 9}, {10, 11}}));
    EXPECT_FALSE(steps.get_next_as_optional());
  }
}

TEST(Distribute, TakesUpAPassWhereAnotherProcessLeftIt) {
  const auto shuffled = [](const Strategy& strategy) {
    return strategy.distribute_dataset(range_dataset(20).shuffle({.seed = 6}).batch(6));
  };
  const MirroredStrategy strategy(cpu_devices(2));
  const auto first = shuffled(strategy);
  static_cast<void>(testing::parts_of(first));
  auto steps = first.iterate();
  static_cast<void>(steps.get_next());
  const DatasetPosition position = steps.position();
  PartSteps rest;
  while (const auto batches = steps.get_next_as_optional()) rest.push_back(rows_by_replica(*batches));

  const auto second = shuffled(strategy);
  PartSteps resumed;
  for (auto step = second.begin_at(position); step != second.end(); ++step)
    resumed.push_back(rows_by_replica(*step));
  EXPECT_EQ(resumed, rest);
  EXPECT_EQ(testing::parts_of(second), testing::parts_of(first)) << "the pass after it is the next one";
}

TEST(Distribute, FoldsThePass) {
  const MirroredStrategy strategy(cpu_devices(3));
  const auto rows = strategy.distribute_dataset(range_dataset(10).batch(4))
                        .reduce(Rows(), [](Rows all, const PerReplica<Tensor>& batches) {
                          for (const Rows& part : rows_by_replica(batches))
                            all.insert(all.end(), part.begin(), part.end());
                          return all;
                        });
  EXPECT_EQ(rows, elements_of(range(10)));
}

TEST(Distribute, KnowsItsNumberOfStepsAsFarAsTheDatasetDoes) {
  const MirroredStrategy strategy(cpu_devices(2));
  const auto steps = [&](const Dataset<Tensor>& dataset) {
    return strategy.distribute_dataset(dataset).cardinality();
  };
  EXPECT_EQ(steps(range_dataset(10).batch(4)), Cardinality::of(3));
  EXPECT_EQ(steps(range_dataset(10).batch(4).repeat()), Cardinality::infinite());
  EXPECT_EQ(steps(counted_dataset(10).batch(4)), Cardinality::unknown());
  const auto in_turn = [&](std::int64_t rows) {
    return strategy
        .distribute_datasets_from_function([&](const InputContext&) { return range_dataset(rows).batch(1); })
        .cardinality();
  };
  EXPECT_EQ(in_turn(4), Cardinality::of(2));
  EXPECT_EQ(in_turn(5), Cardinality::unknown()) << "whether there is a third step is seen at the end";
}

template <class D>
concept Transformable = requires(const D& dataset) {
  dataset.batch(2);
}
|| requires(const D& dataset) { dataset.shuffle(); }
|| requires(const D& dataset) { dataset.repeat(); }
|| requires(const D& dataset) {
  dataset.map([](const Tensor& element) { return element; });
};
static_assert(Transformable<Dataset<Tensor>>);
static_assert(!Transformable<DistributedDataset<Tensor>>,
              "datasets are transformed before they are distributed");

TEST(Distribute, IsForCrossReplicaContext) {
  for (const int replicas : {1, 2}) {
    const MirroredStrategy strategy(cpu_devices(replicas));
    const auto distributed = strategy.distribute_dataset(range_dataset(4).batch(2));
    const auto refused = ThrowsMessage<WrongContext>(
        AllOf(HasSubstr("iterating a distributed dataset"), HasSubstr("inside a replica function")));
    EXPECT_THAT([&] { strategy.run([&] { static_cast<void>(distributed.begin()); }); }, refused);
    auto batches = distributed.begin();
    EXPECT_THAT([&] { strategy.run([&] { ++batches; }); }, refused) << "also when it began outside";
  }
}

TEST(Distribute, IsForTheStrategyThatIsActive) {
  const MirroredStrategy strategy(cpu_devices(2));
  const MirroredStrategy other(cpu_devices(2));
  const auto distributed = strategy.distribute_dataset(range_dataset(4).batch(2));
  const auto scope = other.scope();
  EXPECT_THAT([&] { static_cast<void>(distributed.begin()); },
              ThrowsMessage<WrongContext>(HasSubstr("mixing different strategies")));
}

}  // namespace
}  // namespace cohort::testing
