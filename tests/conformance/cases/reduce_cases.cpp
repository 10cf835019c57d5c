// Reductions and gathers outside replicas.
#include <utility>

#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::Each;

class ReduceCase : public Replicas {};
COHORT_INSTANTIATE_CASES(ReduceCase);

TEST_P(ReduceCase, Case016_SumsReplicaNumbers) {
  EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, each([](int r) { return r; })), total([](int r) { return r; }));
}

TEST_P(ReduceCase, Case017_SumsPairs) {
  const auto pairs = strategy_.run([](int x) { return std::pair(x + 1, x - 1); }, 3);
  EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, pairs), std::pair(4 * replicas(), 2 * replicas()));
}

TEST_P(ReduceCase, Case020_OfCpusIsACollective) {
  EXPECT_EQ(strategy_.extended().cross_device_ops().name(), "CollectiveAllReduce");
}

TEST_P(ReduceCase, Case064_SumsOnesFromAFunctionInsideAndOutsideTheScope) {
  const auto sum = [&] {
    return strategy_.reduce(ReduceOp::kSum,
                            strategy_.distribute_values_from_function([](ValueContext) { return 1.0; }));
  };
  EXPECT_EQ(sum(), replicas());
  const auto scope = strategy_.scope();
  EXPECT_EQ(sum(), replicas());
}

TEST_P(ReduceCase, Case065_ReducesAlongAnAxisToo) {
  const auto values = each([](int) { return Tensor::from({1.0, 2.0}); });
  EXPECT_EQ(strategy_.reduce(ReduceOp::kMean, values, 0).item<double>(), 1.5);
  EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, values, 0).item<double>(), 3 * replicas());
}

class GatherCase : public Replicas {};
COHORT_INSTANTIATE_CASES(GatherCase);

Tensor ones(const Shape& shape) { return Tensor::full(shape, DType::kFloat32, 1); }

TEST_P(GatherCase, Case079_TakesDifferentNumbersOfRows) {
  const Tensor gathered = strategy_.gather(each([](int r) { return ones({r + 1, 1}); }), 0);
  EXPECT_EQ(gathered.shape(), Shape({replicas() * (replicas() + 1) / 2, 1}));
  EXPECT_THAT(numbers(gathered), Each(1));
}

TEST_P(GatherCase, Case080_RefusesOtherExtentsThatDiffer) {
  if (replicas() == 1) GTEST_SKIP() << "one replica differs from nobody";
  const auto widths = each([](int r) { return ones({1, r + 1}); });
  EXPECT_THROW(static_cast<void>(strategy_.gather(widths, 0)), InvalidArgument);
}

TEST_P(GatherCase, Case080_RefusesRanksThatDiffer) {
  if (replicas() == 1) GTEST_SKIP() << "one replica differs from nobody";
  const auto ranks = each([](int r) { return r % 2 == 0 ? ones({1}) : ones({1, 1}); });
  EXPECT_THROW(static_cast<void>(strategy_.gather(ranks, 0)), InvalidArgument);
}

}  // namespace
}  // namespace cohort::testing
