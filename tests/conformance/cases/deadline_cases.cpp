// Collectives that one member does not make: the others give up after the call's deadline.
#include <functional>
#include <latch>

#include <fmt/format.h>

#include "replicas.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::ContainsRegex;

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
