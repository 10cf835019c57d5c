// Strategy::reduce along axes: inside each replica first, then over all of them; the mean
// weighs elements, not replicas.
#include <cmath>

#include <gmock/gmock.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ReduceAlong : public WithReplicas {
 protected:
  [[nodiscard]] std::vector<double> reduced(ReduceOp op, const PerReplica<Tensor>& value,
                                            const Axes& axes) const {
    return numbers(strategy_.reduce(op, value, axes));
  }

  /// [[1,2,3],[4,5,6]] times id+1.
  [[nodiscard]] PerReplica<Tensor> matrices() const {
    return per_replica(strategy_, [](int id) {
      const auto factor = static_cast<float>(id + 1);
      return tensor_of<float>({factor, 2 * factor, 3 * factor, 4 * factor, 5 * factor, 6 * factor}, {2, 3});
    });
  }

  const double total_ = sum_to(replicas());
  const double mean_ = total_ / replicas();
};
COHORT_INSTANTIATE_REPLICAS(ReduceAlong);

TEST_P(ReduceAlong, SumsAlongAnyAxis) {
  EXPECT_THAT(reduced(ReduceOp::kSum, matrices(), 0), ElementsAre(5 * total_, 7 * total_, 9 * total_));
  EXPECT_THAT(reduced(ReduceOp::kSum, matrices(), 1), ElementsAre(6 * total_, 15 * total_));
  EXPECT_THAT(reduced(ReduceOp::kSum, matrices(), -1), ElementsAre(6 * total_, 15 * total_));
  EXPECT_THAT(reduced(ReduceOp::kSum, matrices(), -2), ElementsAre(5 * total_, 7 * total_, 9 * total_));
  EXPECT_THAT(reduced(ReduceOp::kSum, matrices(), {0, 1}), ElementsAre(21 * total_));
}

TEST_P(ReduceAlong, AveragesAlongAnyAxis) {
  EXPECT_THAT(reduced(ReduceOp::kMean, matrices(), 1), ElementsAre(2 * mean_, 5 * mean_));
  EXPECT_THAT(reduced(ReduceOp::kMean, matrices(), -2), ElementsAre(2.5 * mean_, 3.5 * mean_, 4.5 * mean_));
  EXPECT_THAT(reduced(ReduceOp::kMean, matrices(), {1, 0}), ElementsAre(3.5 * mean_));
}

TEST_P(ReduceAlong, TakesAxesThatAreKnownAtRunTimeOnly) {
  std::vector<int> axes;
  axes.push_back(1);
  EXPECT_THAT(reduced(ReduceOp::kSum, matrices(), axes), ElementsAre(6 * total_, 15 * total_));
  axes.push_back(0);
  EXPECT_THAT(numbers(strategy_.reduce(ReduceOp::kSum, matrices(), std::span<const int>(axes))),
              ElementsAre(21 * total_));
}

TEST_P(ReduceAlong, NoAxisOverReplicasOnly) {
  const auto vectors = per_replica(strategy_, [](int id) {
    return vector_of<double>({id + 1.0, 10.0 * (id + 1)});
  });
  EXPECT_THAT(reduced(ReduceOp::kSum, vectors, std::initializer_list<int>{}),
              ElementsAre(total_, 10 * total_));
  EXPECT_THAT(reduced(ReduceOp::kMean, vectors, std::initializer_list<int>{}),
              ElementsAre(mean_, 10 * mean_));
}

TEST_P(ReduceAlong, WeighsUnevenBatchesByTheirElements) {
  // Replica r has r+1 elements, all of them r.
  const auto ragged = per_replica(
      strategy_, [](int id) { return vector_of(std::vector<double>(static_cast<std::size_t>(id) + 1, id)); });
  double sum = 0;
  for (int id = 0; id < replicas(); ++id) sum += id * (id + 1);
  EXPECT_THAT(reduced(ReduceOp::kSum, ragged, 0), ElementsAre(sum));
  EXPECT_THAT(reduced(ReduceOp::kMean, ragged, 0), ElementsAre(sum / total_));
}

TEST_P(ReduceAlong, CountsEmptyBatchesForNothing) {
  const auto only_first = per_replica(strategy_, [](int id) {
    return id == 0 ? vector_of<float>({1, 2, 3}) : Tensor::zeros({0}, DType::kFloat32);
  });
  EXPECT_THAT(reduced(ReduceOp::kSum, only_first, 0), ElementsAre(6));
  EXPECT_THAT(reduced(ReduceOp::kMean, only_first, 0), ElementsAre(2));
}

TEST_P(ReduceAlong, HasNoMeanOfNothing) {
  const auto empty = per_replica(strategy_, [](int) { return Tensor::zeros({0, 2}, DType::kFloat32); });
  EXPECT_THAT(reduced(ReduceOp::kSum, empty, 0), ElementsAre(0, 0));
  for (const double value : reduced(ReduceOp::kMean, empty, 0)) EXPECT_TRUE(std::isnan(value));
}

TEST_P(ReduceAlong, KeepsTheDtypeOfASumAndMakesTheMeanOfIntegersFloating) {
  for (const DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;
    const auto values = per_replica(strategy_, [&](int id) {
      return vector_of<double>({id + 1.0, 2.0}).cast(dtype);
    });
    const Tensor sum = strategy_.reduce(ReduceOp::kSum, values, 0);
    const Tensor average = strategy_.reduce(ReduceOp::kMean, values, 0);
    const DType narrow_or_wide = size_of(dtype) <= 2 ? DType::kFloat32 : DType::kFloat64;
    EXPECT_EQ(sum.dtype(), dtype);
    EXPECT_EQ(sum.item<double>(), total_ + 2 * replicas()) << to_string(dtype);
    EXPECT_EQ(average.dtype(), is_floating(dtype) ? dtype : narrow_or_wide) << to_string(dtype);
    EXPECT_EQ(average.item<double>(), (mean_ + 2) / 2) << to_string(dtype);
  }
}

TEST_P(ReduceAlong, LosesNothingInSixteenBits) {
  // 4096 ones: a sum in float16 would stop at 2048.
  const auto ones = per_replica(strategy_, [](int) { return Tensor::full({4096}, DType::kFloat16, 1); });
  EXPECT_THAT(reduced(ReduceOp::kSum, ones, 0), ElementsAre(4096 * replicas()));
  EXPECT_THAT(reduced(ReduceOp::kMean, ones, 0), ElementsAre(1));
}

TEST_P(ReduceAlong, WrapsIntegersLikeTheirDtype) {
  const auto hundreds = per_replica(strategy_, [](int) { return Tensor::full({2}, DType::kUInt8, 100); });
  EXPECT_THAT(reduced(ReduceOp::kSum, hundreds, 0), ElementsAre(200 * replicas() % 256));
  EXPECT_THAT(reduced(ReduceOp::kMean, hundreds, 0), ElementsAre(100));
}

TEST_P(ReduceAlong, DoesNotWrapTheMeanOfLargeIntegers) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 62;
  const auto large = per_replica(strategy_, [](int) {
    return vector_of<std::int64_t>({kLarge, kLarge, kLarge});
  });
  EXPECT_EQ(strategy_.reduce(ReduceOp::kMean, large, 0).item<double>(), static_cast<double>(kLarge));
}

TEST_P(ReduceAlong, RefusesBool) {
  const auto flags = per_replica(strategy_, [](int) { return Tensor::zeros({2}, DType::kBool); });
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    EXPECT_THAT([&] { return strategy_.reduce(op, flags, 0); },
                ThrowsMessage<InvalidArgument>(HasSubstr("bool")));
  }
}

TEST_P(ReduceAlong, NamesAnAxisThatIsOutOfRangeOrGivenTwice) {
  const auto vectors = per_replica(strategy_, [](int) { return vector_of<float>({1, 2}); });
  const auto scalars = per_replica(strategy_, [](int) { return Tensor::scalar(1.0); });
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    EXPECT_THAT(
        [&] { return strategy_.reduce(op, vectors, 2); },
        ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("axis 2 is out of range"), HasSubstr("rank 1"))));
    EXPECT_THROW(static_cast<void>(strategy_.reduce(op, vectors, -2)), InvalidArgument);
    EXPECT_THROW(static_cast<void>(strategy_.reduce(op, scalars, 0)), InvalidArgument);
    EXPECT_THAT(
        [&] {
          return strategy_.reduce(op, matrices(), {1, -1});
        },
        ThrowsMessage<InvalidArgument>(HasSubstr("named twice")));
  }
}

class ReduceAlongOfSeveral : public WithSeveralReplicas {};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(ReduceAlongOfSeveral);

TEST_P(ReduceAlongOfSeveral, LetsOnlyTheReducedAxesDiffer) {
  const auto values = per_replica(strategy_, [&](int id) {
    return Tensor::zeros({id + 1, id == last() ? 4 : 3}, DType::kFloat32);
  });
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    EXPECT_THAT(
        [&] { return strategy_.reduce(op, values, 0); },
        ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("float32[" + std::to_string(replicas()) + ", 4]"),
                                             HasSubstr("replica 0 has float32[1, 3]"),
                                             HasSubstr("only the reduced axes may differ"))));
  }
}

TEST_P(ReduceAlongOfSeveral, NamesTheReplicaWhoseDtypeDiffers) {
  const auto values = per_replica(
      strategy_, [&](int id) { return Tensor::zeros({2}, id == last() ? DType::kInt64 : DType::kInt32); });
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    EXPECT_THAT([&] { return strategy_.reduce(op, values, 0); },
                ThrowsMessage<InvalidArgument>(HasSubstr("int64[2], replica 0 has int32[2]")));
  }
}

}  // namespace
}  // namespace cohort::testing
