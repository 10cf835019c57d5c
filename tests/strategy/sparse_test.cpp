// IndexedSlices in reductions inside of replicas: all rows are kept, one replica after the
// other, alone and beside dense values.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "fake_cluster.h"
#include "strategies.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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
