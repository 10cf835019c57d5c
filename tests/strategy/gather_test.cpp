// Strategy::gather: the replicas' tensors one after the other.
#include <gmock/gmock.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A tensor full of the replica's number.
template <class ShapeOf>
PerReplica<Tensor> filled(const Strategy& strategy, ShapeOf shape_of, DType dtype = DType::kFloat32) {
  return per_replica(strategy, [&](int id) { return Tensor::full(shape_of(id), dtype, id); });
}

class Gather : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(Gather);

TEST_P(Gather, ConcatenatesAlongTheFirstAxis) {
  const Tensor all = strategy_.gather(filled(strategy_, [](int) { return Shape{2, 3}; }), 0);
  EXPECT_EQ(all.shape(), (Shape{2 * replicas(), 3}));
  for (int row = 0; row < 2 * replicas(); ++row) EXPECT_EQ(all.row(row).row(2).item<int>(), row / 2);
}

TEST_P(Gather, ConcatenatesAlongTheLastAxisAlsoByANegativeNumber) {
  const auto values = filled(strategy_, [](int) { return Shape{2, 3}; });
  const Tensor all = strategy_.gather(values, 1);
  EXPECT_EQ(all.shape(), (Shape{2, 3 * replicas()}));
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 3 * replicas(); ++column) {
      EXPECT_EQ(all.row(row).row(column).item<int>(), column / 3);
    }
  }
  EXPECT_TRUE(bitwise_equal(strategy_.gather(values, -1), all));
}

TEST_P(Gather, TakesUnevenAndEmptyParts) {
  const Tensor all = strategy_.gather(filled(strategy_, [](int id) { return Shape{id, 2}; }), 0);
  EXPECT_EQ(all.shape(), (Shape{sum_to(last()), 2}));
  int row = 0;
  for (int id = 0; id < replicas(); ++id) {
    for (int i = 0; i < id; ++i) EXPECT_EQ(all.row(row++).row(0).item<int>(), id);
  }
  const Tensor wide = strategy_.gather(filled(strategy_, [](int id) { return Shape{2, id}; }), 1);
  EXPECT_EQ(wide.shape(), (Shape{2, sum_to(last())}));
}

TEST_P(Gather, MovesEveryDtype) {
  for (const DType dtype : kAllDTypes) {
    const Tensor all = strategy_.gather(filled(
                                            strategy_, [](int) { return Shape{1}; }, dtype),
                                        0);
    EXPECT_EQ(all.dtype(), dtype);
    EXPECT_EQ(all.row(-1).item<int>(), dtype == DType::kBool ? last() > 0 : last()) << to_string(dtype);
  }
}

TEST_P(Gather, RefusesScalarsAndAnAxisOutOfRange) {
  EXPECT_THAT([&] { return strategy_.gather(filled(strategy_, [](int) { return Shape{}; }), 0); },
              ThrowsMessage<InvalidArgument>(HasSubstr("scalars")));
  const auto vectors = filled(strategy_, [](int) { return Shape{1}; });
  EXPECT_THAT([&] { return strategy_.gather(vectors, 1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("axis 1")));
  EXPECT_THROW(static_cast<void>(strategy_.gather(vectors, -2)), InvalidArgument);
}

TEST_P(Gather, RefusesAValueOfAStrategyWithOtherReplicas) {
  const PerReplica foreign(
      std::vector<Tensor>(static_cast<std::size_t>(replicas()) + 1, Tensor::from({1.0f})));
  EXPECT_THAT([&] { return strategy_.gather(foreign, 0); },
              ThrowsMessage<InvalidArgument>(HasSubstr(std::to_string(replicas()) + " local replicas")));
}

class GatherOfSeveral : public WithSeveralReplicas {};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(GatherOfSeveral);

TEST_P(GatherOfSeveral, LetsOnlyTheGatheredAxisDiffer) {
  const auto refused = [&](auto shape_of, const std::string& odd) {
    EXPECT_THAT([&] { return strategy_.gather(filled(strategy_, shape_of), 0); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("shape mismatch"), HasSubstr(odd))));
  };
  refused([&](int id) { return id == last() ? Shape{2, 4} : Shape{2, 3}; }, "float32[2, 4]");
  refused([&](int id) { return id == last() ? Shape{2} : Shape{2, 3}; }, "float32[2]");
}

}  // namespace
}  // namespace cohort::testing
