// Collectives that replicas call: what they give, how they pack, and who gives up when one member does not
// call.
#include <functional>
#include <latch>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/collective/packing.h>
#include <cohort/strategy/one_device_strategy.h>

#include "replicas.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

// Collectives that replicas call.

using ::testing::ContainsRegex;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;

/// 1 on replica 0, 3 on replica 1, and so on; [39, 2] on replica 0, [3, 41] on replica 1.
using Mixed = std::pair<double, std::vector<Tensor>>;
double scalar_of(int r) { return 1 + 2.0 * r; }
double first_of(int r) { return 39 - 36.0 * r; }
double second_of(int r) { return 2 + 39.0 * r; }

class AllReduceCase : public Replicas {
 protected:
  void check(SumOrMean op, double divisor) const {
    const auto results = strategy_.run([&](ReplicaContext& replica) {
      const int r = replica.replica_id_in_sync_group();
      return replica.all_reduce(op, Mixed(scalar_of(r), {Tensor::from({first_of(r), second_of(r)})}));
    });
    for_each_local(results, [&](int /*r*/, const Mixed& result) {
      EXPECT_DOUBLE_EQ(result.first, total(scalar_of) / divisor);
      EXPECT_THAT(numbers(result.second.at(0)),
                  ElementsAre(total(first_of) / divisor, total(second_of) / divisor));
    });
  }
};
COHORT_INSTANTIATE_CASES(AllReduceCase);

TEST_P(AllReduceCase, Case004_SumsStructures) { check("sum", 1); }

TEST_P(AllReduceCase, Case005_AveragesStructures) { check("mean", replicas()); }

/// What the sum over all replicas of weight(r) * mean(x) gains per unit of x on one replica.
TEST_P(AllReduceCase, Case007_HasItselfAsItsGradient) {
  const auto weight = [](int r) { return 2.0 + r; };
  const auto loss = [&](int changed, double step) {
    const auto losses = strategy_.run([&](ReplicaContext& replica) {
      const int r = replica.replica_id_in_sync_group();
      return weight(r) * replica.all_reduce(ReduceOp::kMean, r + (r == changed ? step : 0.0));
    });
    return strategy_.reduce(ReduceOp::kSum, losses);
  };
  const auto gradients = strategy_.run([&](ReplicaContext& replica) {
    return replica.all_reduce(ReduceOp::kMean, weight(replica.replica_id_in_sync_group()));
  });
  for (int changed = 0; changed < replicas(); ++changed) {
    const double slope = (loss(changed, 0.5) - loss(changed, -0.5)) / 1.0;
    EXPECT_THAT(strategy_.local_results(gradients), Each(DoubleNear(slope, 1e-12)));
  }
}

TEST(AllReduceOfOneReplica, Case008_ReturnsItsArgument) {
  const OneDeviceStrategy strategy;
  const auto results = strategy.run([](ReplicaContext& replica) {
    return replica.all_reduce(ReduceOp::kSum, Mixed(4, {Tensor::from({42.0, 43.0})}));
  });
  EXPECT_EQ(results[0].first, 4);
  EXPECT_THAT(numbers(results[0].second.at(0)), ElementsAre(42, 43));
}

class AllGatherCase : public Replicas {};
COHORT_INSTANTIATE_CASES(AllGatherCase);

TEST_P(AllGatherCase, Case073_ConcatenatesOnEveryAxis) {
  for (int axis = 0; axis < 3; ++axis) {
    const auto gathered = strategy_.run([&](ReplicaContext& replica) {
      return replica.all_gather(Tensor::full({1, 2, 2}, DType::kFloat32, replica.replica_id_in_sync_group()),
                                axis);
    });
    std::vector<std::int64_t> extents{1, 2, 2};
    const std::int64_t own = extents[static_cast<std::size_t>(axis)];
    extents[static_cast<std::size_t>(axis)] *= replicas();
    std::int64_t inner = 1;
    for (int below = axis + 1; below < 3; ++below) inner *= extents[static_cast<std::size_t>(below)];
    for_each_local(gathered, [&](int /*r*/, const Tensor& all) {
      EXPECT_EQ(all.shape(), Shape(extents));
      const std::vector<double> values = numbers(all);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t replica = static_cast<std::int64_t>(i) / inner / own % replicas();
        EXPECT_EQ(values[i], static_cast<double>(replica)) << "axis " << axis << ", element " << i;
      }
    });
  }
}

// Which tensors share a collective.

TEST(PackingCase, Case077_FillsAPackBeyondItsLimit) {
  const auto bytes = [](std::int64_t count) { return TensorSpec{{count}, DType::kUInt8}; };
  // The list is packed from its end: 128, 32 and 800 bytes, then 4.
  EXPECT_THAT(make_packs(std::vector{bytes(4), bytes(800), bytes(32), bytes(128)}, 200),
              ElementsAre(ElementsAre(3, 2, 1), ElementsAre(0)));
}

// Collectives that one member does not make: the others give up after the call's deadline.

constexpr CommunicationOptions kShort{.timeout_seconds = 0.2};

TensorOrSlices dense() { return Tensor::scalar(1.0); }
TensorOrSlices sparse() { return IndexedSlices{Tensor::from({1.0f}), Tensor::from({0}), {3}}; }

/// Expects `call` to end in an error that names the workers or replicas 1, 2, ... of so many as missing.
void expect_to_give_up(std::string_view kind, int count, const std::function<void()>& call) {
  const std::string text = message_of(ErrorCode::kDeadlineExceeded, call);
  // Workers that are threads of one process all have the number 0.
  const std::string_view of_threads = kind == "worker" ? "|worker 0" : "";
  for (int number = 1; number < count; ++number) {
    EXPECT_THAT(text, ContainsRegex(
                          fmt::format("set for this call.*missing: .*({} {}{}) ", kind, number, of_threads)));
  }
}

class DeadlineCase : public Replicas {};
COHORT_INSTANTIATE_CASES(DeadlineCase);

TEST_P(DeadlineCase, Case074_OfWorkersThatDoNotReduce) {
  if (workers() == 1) GTEST_SKIP() << "for several workers";
  using Reduce = std::function<void(StrategyExtended&)>;
  using Pair = std::pair<PerReplica<TensorOrSlices>, Destinations>;
  const auto dense_parts = each([](int) { return dense(); });
  const auto sparse_parts = each([](int) { return sparse(); });
  const Reduce one_dense = [&](StrategyExtended& extended) {
    static_cast<void>(extended.reduce_to("sum", dense_parts, "cpu:0", kShort));
  };
  const Reduce one_sparse = [&](StrategyExtended& extended) {
    static_cast<void>(extended.reduce_to("sum", sparse_parts, "cpu:0", kShort));
  };
  const Reduce batch = [&](StrategyExtended& extended) {
    const std::vector<Pair> pairs{{dense_parts, "cpu:0"}, {sparse_parts, "cpu:0"}};
    static_cast<void>(extended.batch_reduce_to("mean", pairs, kShort));
  };
  for (const Reduce& reduce : {one_dense, one_sparse, batch}) {
    const Strategy strategy = make_strategy(GetParam());
    if (first_local() == 0) expect_to_give_up("worker", workers(), [&] { reduce(strategy.extended()); });
    meet();
  }
}

TEST_P(DeadlineCase, Case074_OfReplicasThatDoNotReduce) {
  if (replicas() == 1) GTEST_SKIP() << "for several replicas";
  using List = std::vector<TensorOrSlices>;
  for (const List& list : {List{dense()}, List{sparse()}, List{dense(), sparse()}}) {
    const Strategy strategy = make_strategy(GetParam());
    std::latch given_up(1);
    strategy.run([&](ReplicaContext& replica) {
      if (replica.replica_id_in_sync_group() == 0) {
        expect_to_give_up("replica", replicas(),
                          [&] { static_cast<void>(replica.all_reduce("sum", list, kShort)); });
        given_up.count_down();
      } else if (first_local() == 0) {
        given_up.wait();  // a replica that had returned would be missed at once
      }
    });
    meet();
  }
}

}  // namespace
}  // namespace cohort::testing
