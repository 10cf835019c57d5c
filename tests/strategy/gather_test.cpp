// Rows put one after the other: `gather` of tensors, and IndexedSlices in reductions.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "fake_cluster.h"
#include "strategies.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

// Strategy::gather: the replicas' tensors one after the other.

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
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

// IndexedSlices in reductions inside of replicas: all rows are kept, one replica after the
// other, alone and beside dense values.

/// As strategies made by `make(replicas)` see it: the replicas are devices of one worker, or workers.
class Sparse : public ::testing::TestWithParam<std::pair<bool, int>> {
 protected:
  [[nodiscard]] static int replicas() { return GetParam().second; }

  template <class Function>
  static void for_each_replica(Function function) {
    if (GetParam().first) {
      for_each_worker(replicas(), [&](Bootstrap& worker) {
        MultiWorkerMirroredStrategy(worker, kPatient).run(function);
      });
    } else {
      mirrored(replicas()).run(function);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, Sparse,
                         ::testing::Values(std::pair(false, 1), std::pair(false, 2), std::pair(false, 3),
                                           std::pair(false, 4), std::pair(true, 2), std::pair(true, 3),
                                           std::pair(true, 4)),
                         [](const auto& test) {
                           return (test.param.first ? "Workers" : "Devices") +
                                  std::to_string(test.param.second);
                         });

std::vector<std::int64_t> places(const IndexedSlices& slices) {
  const auto indices = slices.indices.span<std::int64_t>();
  return {indices.begin(), indices.end()};
}

auto about(double value) { return ::testing::DoubleNear(value, 1e-6); }

/// Rows 0 and `id` of a [5, 1] tensor: id + 1 and 1.
IndexedSlices two_rows(int id) {
  return {
      tensor_of<float>({static_cast<float>(id + 1), 1}, {2, 1}), vector_of<std::int64_t>({0, id}), {5, 1}};
}

TEST_P(Sparse, AllReduceKeepsDuplicateRows) {
  for_each_replica([](ReplicaContext& replica) {
    const IndexedSlices sums = replica.all_reduce("sum", two_rows(replica.replica_id_in_sync_group()));
    std::vector<double> values;
    std::vector<std::int64_t> rows;
    for (int id = 0; id < replicas(); ++id) {
      values.insert(values.end(), {id + 1.0, 1});
      rows.insert(rows.end(), {0, id});
    }
    EXPECT_EQ(numbers(sums.values), values);
    EXPECT_EQ(places(sums), rows);
    EXPECT_EQ(sums.dense_shape, (Shape{5, 1}));
  });
}

TEST_P(Sparse, KeepsItsPlaceBesideDenseValues) {
  for_each_replica([](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const std::vector<TensorOrSlices> gradients{two_rows(id), Tensor::scalar(id + 1.0), two_rows(id),
                                                vector_of<float>({1, 2})};
    const auto sums = replica.all_reduce("sum", gradients, {.bytes_per_pack = 4});
    ASSERT_THAT(sums, SizeIs(4));
    for (const std::size_t i : {0u, 2u})
      EXPECT_THAT(places(std::get<IndexedSlices>(sums[i])), SizeIs(2 * replicas()));
    EXPECT_EQ(std::get<Tensor>(sums[1]).item<double>(), sum_to(replicas()));
    EXPECT_THAT(numbers(std::get<Tensor>(sums[3])), ElementsAre(replicas(), 2 * replicas()));
  });
}

TEST_P(Sparse, IsNotGatheredByAllGather) {
  for_each_replica([](ReplicaContext& replica) {
    EXPECT_THAT(message_of(ErrorCode::kUnimplemented, [&] { return replica.all_gather(two_rows(0), 0); }),
                HasSubstr("densify"));
  });
}

TEST_P(Sparse, ThatDiffersIsNamed) {
  if (replicas() < 3) return;
  for_each_replica([](ReplicaContext& replica) {
    IndexedSlices mine = two_rows(0);
    if (replica.replica_id_in_sync_group() == 1) mine.dense_shape = {6, 1};
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { return replica.all_reduce("sum", mine); }),
                AllOf(HasSubstr("member 1 ("), HasSubstr("float32[6, 1]")));
  });
}

TEST_P(Sparse, IsToldFromDense) {
  if (replicas() < 3) return;
  for_each_replica([](ReplicaContext& replica) {
    const bool odd = replica.replica_id_in_sync_group() == 1;
    const TensorOrSlices mine = odd ? TensorOrSlices(Tensor::zeros({5, 1}, DType::kFloat32)) : two_rows(0);
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { return replica.all_reduce("sum", mine); }),
                HasSubstr("replica 1 ("));
  });
}

TEST(SparseInCrossReplicaContext, IsReducedAndGathered) {
  const MirroredStrategy strategy = mirrored(3);
  const auto slices = per_replica(strategy, two_rows);
  EXPECT_THAT(places(strategy.reduce("sum", slices)), ElementsAre(0, 0, 0, 1, 0, 2));
  EXPECT_THAT(numbers(densify(strategy.reduce("mean", slices))),
              ElementsAre(about(7.0 / 3), about(1.0 / 3), about(1.0 / 3), 0, 0));
  const Tensor dense = strategy.gather(slices, 0);
  EXPECT_EQ(dense.shape(), (Shape{15, 1}));
  EXPECT_THAT(numbers(dense), ElementsAre(2, 0, 0, 0, 0, 2, 1, 0, 0, 0, 3, 0, 1, 0, 0));
}

}  // namespace
}  // namespace cohort::testing
