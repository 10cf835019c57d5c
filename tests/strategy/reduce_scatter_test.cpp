// ReplicaContext::reduce_scatter: each replica's part of what all of them sum up.
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/value/indexed_slices.h>

#include "fake_cluster.h"
#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Counts up from `first`.
Tensor counting(const Shape& shape, double first, DType dtype = DType::kFloat32) {
  const Tensor tensor = Tensor::zeros(shape, DType::kFloat64);
  for (double& value : tensor.span<double>()) value = first++;
  return tensor.cast(dtype);
}

double dot(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = numbers(a);
  const std::vector<double> y = numbers(b);
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

class ReduceScatter : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(ReduceScatter);

TEST_P(ReduceScatter, GivesEachReplicaItsRowsOfTheSumAndOfTheMean) {
  strategy_.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const Tensor value = counting({2 * replicas(), 3}, id).to(replica.device());
    const Tensor part = Tensor::zeros({2, 3}, DType::kFloat32);
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      const Tensor rows = replica.reduce_scatter(op, value, part, 0);
      EXPECT_TRUE(bitwise_equal(rows, replica.all_reduce(op, value).rows(2 * id, 2 * id + 2)));
      EXPECT_EQ(rows.device(), replica.device());
    }
  });
}

// <g, all_gather(x)> summed over the replicas is <reduce_scatter(g), x> summed over the replicas. Small
// integers, so both are exact.
TEST_P(ReduceScatter, IsAllGatherTransposedAlongAnyAxisAndForAnyLengths) {
  const auto length = [&](int id, int kind) { return kind == 0 ? 2 : kind == 1 ? id : id == last() ? 3 : 0; };
  for (int axis = -3; axis < 3; ++axis) {
    for (int kind = 0; kind < 3; ++kind) {
      strategy_.run([&](ReplicaContext& replica) {
        const int id = replica.replica_id_in_sync_group();
        const Tensor x = counting(Shape{2, 3, 2}.with(axis, length(id, kind)), id);
        const Tensor gathered = replica.all_gather(x, axis);
        const Tensor g = counting(gathered.shape(), 1 - 2 * id);
        const Tensor back = replica.reduce_scatter(ReduceOp::kSum, g, x, axis);
        EXPECT_EQ(back.shape(), x.shape());
        EXPECT_EQ(replica.all_reduce(ReduceOp::kSum, dot(g, gathered)),
                  replica.all_reduce(ReduceOp::kSum, dot(back, x)))
            << "axis " << axis << ", lengths of kind " << kind;
      });
    }
  }
}

TEST_P(ReduceScatter, TakesNestedStructures) {
  strategy_.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const std::map<std::string, std::vector<Tensor>> part{
        {"a", {Tensor::from({0})}}, {"b", {Tensor::zeros({id, 2}, DType::kFloat64), Tensor()}}};
    const std::map<std::string, std::vector<Tensor>> value{
        {"a", {counting({replicas()}, 0, DType::kInt32)}},
        {"b", {Tensor::full({sum_to(last()), 2}, DType::kFloat64, id), Tensor()}}};
    const auto mine = replica.reduce_scatter(ReduceOp::kSum, value, part, 0);
    EXPECT_EQ(mine.at("a")[0].dtype(), DType::kInt32);
    EXPECT_THAT(numbers(mine.at("a")[0]), ElementsAre(id * replicas()));
    EXPECT_EQ(mine.at("b")[0].shape(), (Shape{id, 2}));
    EXPECT_THAT(numbers(mine.at("b")[0]), Each(sum_to(last())));
    EXPECT_EQ(mine.at("b")[1].shape(), Shape{0});
  });
}

TEST_P(ReduceScatter, MakesTheMeanOfIntegersFloatingAsAllReduceDoes) {
  strategy_.run([&](ReplicaContext& replica) {
    const Tensor value = Tensor::full({replicas()}, DType::kInt64, replica.replica_id_in_sync_group());
    const Tensor mean = replica.reduce_scatter(ReduceOp::kMean, value, Tensor::from({0}), 0);
    EXPECT_EQ(mean.dtype(), replicas() == 1 ? DType::kInt64 : DType::kFloat64);
    EXPECT_THAT(numbers(mean), ElementsAre(last() / 2.0));
  });
}

TEST_P(ReduceScatter, GivesEachReplicaStorageOfItsOwnAndLeavesTheInputsAlone) {
  const Tensor shared = Tensor::full({replicas()}, DType::kFloat32, 3);
  const auto parts = strategy_.run([&](ReplicaContext& replica) {
    Tensor part = replica.reduce_scatter(ReduceOp::kSum, shared, Tensor::from({0.0f}), 0);
    replica.merge_call([](const Strategy&) {});
    part.fill(replica.replica_id_in_sync_group());
    return part;
  });
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i].item<int>(), static_cast<int>(i));
  EXPECT_THAT(numbers(shared), Each(3));
}

TEST_P(ReduceScatter, RefusesPartsThatDoNotFit) {
  const auto scattering = [&](const Tensor& value, const Tensor& part, int axis) {
    return [=, this] {
      strategy_.run(
          [=](ReplicaContext& replica) { return replica.reduce_scatter(ReduceOp::kSum, value, part, axis); });
    };
  };
  const Tensor value = Tensor::zeros({2 * replicas(), 2}, DType::kFloat32);
  const auto part = [](const Shape& shape) { return Tensor::zeros(shape, DType::kFloat32); };
  EXPECT_NO_THROW(scattering(value, part({2, 2}), 0)());
  EXPECT_THAT(scattering(Tensor::scalar(1.0), part({}), 0),
              ThrowsMessage<InvalidArgument>(HasSubstr("a scalar has no parts")));
  EXPECT_THAT(scattering(value, part({2, 2}), 2), ThrowsMessage<InvalidArgument>(HasSubstr("axis 2")));
  EXPECT_THAT(
      scattering(value, part({2, 3}), 0),
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("[2, 3]"), HasSubstr("only axis 0 may differ"))));
  EXPECT_THAT(scattering(value, part({2}), 0), ThrowsMessage<InvalidArgument>(HasSubstr("[2]")));
  EXPECT_THROW(scattering(value, part({1, 2}), 0)(), InvalidArgument) << "rows are left over";
}

TEST_P(ReduceScatter, RefusesSlices) {
  const IndexedSlices slices{Tensor::from({1.0f}), Tensor::from({std::int64_t{0}}), {4}};
  EXPECT_THAT(
      [&] {
        strategy_.run([&](ReplicaContext& replica) {
          return replica.reduce_scatter(ReduceOp::kSum, slices, slices, 0);
        });
      },
      ThrowsMessage<Unimplemented>(HasSubstr("all_reduce takes sparse values")));
}

TEST_P(ReduceScatter, GoesOverWorkersToo) {
  for_each_worker(replicas(), [](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, kPatient);
    strategy.run([&](ReplicaContext& replica) {
      const int id = replica.replica_id_in_sync_group();
      const Tensor columns = replica.reduce_scatter(ReduceOp::kSum, counting({2, sum_to(replicas())}, 0),
                                                    Tensor::zeros({2, id + 1}, DType::kFloat32), 1);
      EXPECT_EQ(columns.shape(), (Shape{2, id + 1}));
      EXPECT_EQ(numbers(columns).front(), replicas() * sum_to(id));
    });
  });
}

class ReduceScatterOfSeveral : public WithSeveralReplicas {};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(ReduceScatterOfSeveral);

TEST_P(ReduceScatterOfSeveral, NamesWhoseValueIsNotAsLongAsThePartsTogether) {
  const std::string odd = "member " + std::to_string(last()) + " ";
  EXPECT_THAT(
      [&] {
        strategy_.run([&](ReplicaContext& replica) {
          const int extra = replica.replica_id_in_sync_group() == last() ? 1 : 0;
          return replica.reduce_scatter(ReduceOp::kSum, Tensor::zeros({replicas() + extra}, DType::kFloat32),
                                        Tensor::from({0.0f}), 0);
        });
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr(odd), HasSubstr(std::to_string(replicas() + 1) + " along that axis"))));
}

TEST_P(ReduceScatterOfSeveral, ListsPartsThatDoNotAddUp) {
  std::string parts = "by member: [1";
  for (int id = 1; id < replicas(); ++id) parts += id == last() ? ", 2]" : ", 1";
  EXPECT_THAT(
      [&] {
        strategy_.run([&](ReplicaContext& replica) {
          const int length = replica.replica_id_in_sync_group() == last() ? 2 : 1;
          return replica.reduce_scatter(ReduceOp::kSum, Tensor::zeros({replicas()}, DType::kFloat32),
                                        Tensor::zeros({length}, DType::kFloat32), 0);
        });
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("do not add up"), HasSubstr(parts))));
}

TEST_P(ReduceScatterOfSeveral, NamesWhoCallsItAlongAnotherAxis) {
  EXPECT_THAT(
      [&] {
        strategy_.run([&](ReplicaContext& replica) {
          const bool odd = replica.replica_id_in_sync_group() == last();
          const Tensor value = Tensor::zeros({replicas(), replicas()}, DType::kFloat32);
          const Shape part = odd ? Shape{replicas(), 1} : Shape{1, replicas()};
          return replica.reduce_scatter(ReduceOp::kSum, value, Tensor::zeros(part, DType::kFloat32),
                                        odd ? 1 : 0);
        });
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("replica " + std::to_string(last()) + " (worker 0")));
}

}  // namespace
}  // namespace cohort::testing
