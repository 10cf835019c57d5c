// ReplicaContext::all_reduce: what every replica passes, reduced, for every replica.
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include <cohort/collective/call_hooks.h>

#include "reduction_inputs.h"
#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::ThrowsMessage;

class AllReduce : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(AllReduce);

// Every association order of these inputs has the same exact result, so a wrong bit is a bug.
TEST_P(AllReduce, GivesEveryReplicaTheSameBitsForEveryDtypeAndLength) {
  for (const DType dtype : kAllDTypes) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      if (!is_legal(op, dtype)) continue;
      for (const std::size_t elements : {0u, 1u, 13u, 1031u}) {
        const Tensor wanted = exact_result(replicas(), dtype, op, elements);
        const auto results = strategy_.run([&](ReplicaContext& replica) {
          return replica.all_reduce(op,
                                    exact_inputs(replica.replica_id_in_sync_group(), dtype, op, elements));
        });
        for (const Tensor& result : results.components()) {
          EXPECT_TRUE(bitwise_equal(result, wanted))
              << to_string(op) << " of " << describe(wanted) << ": got " << result << ", wanted " << wanted;
        }
      }
    }
  }
}

TEST_P(AllReduce, TakesNumbers) {
  strategy_.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    EXPECT_EQ(replica.all_reduce(ReduceOp::kSum, id + 1), sum_to(replicas()));
    EXPECT_EQ(replica.all_reduce(ReduceOp::kMean, id + 1.0), (replicas() + 1) / 2.0);
    EXPECT_EQ(replica.all_reduce(ReduceOp::kSum, 3.0f), 3.0f * static_cast<float>(replicas()))
        << "equal ones count each";
  });
}

TEST_P(AllReduce, TakesNestedStructuresOfMixedDtypes) {
  using Value = std::tuple<float, std::vector<Tensor>, std::map<std::string, std::pair<Tensor, std::int64_t>>,
                           std::optional<Tensor>, std::optional<Tensor>>;
  const auto results = strategy_.run([](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const Value mine{1.0f + 2.0f * static_cast<float>(id),
                     {vector_of<float>({1, 39}), Tensor::scalar(float16(2))},
                     {{"k", {Tensor::full({1, 1}, DType::kInt32, id), id}}},
                     Tensor::scalar(0.5),
                     std::nullopt};
    return replica.all_reduce(ReduceOp::kSum, mine);
  });
  for (const auto& [number, tensors, named, present, absent] : results.components()) {
    EXPECT_EQ(number, static_cast<float>(replicas() * replicas()));
    EXPECT_THAT(numbers(tensors[0]), ElementsAre(replicas(), 39 * replicas()));
    EXPECT_EQ(tensors[1].dtype(), DType::kFloat16);
    EXPECT_EQ(tensors[1].item<int>(), 2 * replicas());
    EXPECT_EQ(named.at("k").first.shape(), (Shape{1, 1}));
    EXPECT_EQ(named.at("k").first.item<int>(), sum_to(last()));
    EXPECT_EQ(named.at("k").second, sum_to(last()));
    EXPECT_EQ(present->item<double>(), 0.5 * replicas());
    EXPECT_FALSE(absent);
  }
}

TEST_P(AllReduce, OfAnEmptyStructureIsEmpty) {
  strategy_.run([](ReplicaContext& replica) {
    EXPECT_THAT(replica.all_reduce(ReduceOp::kSum, std::vector<Tensor>()), IsEmpty());
  });
}

TEST_P(AllReduce, OfManyTensorsKeepsThemApart) {
  strategy_.run([&](ReplicaContext& replica) {
    std::vector<Tensor> mine;
    mine.reserve(50);
    for (int i = 0; i < 50; ++i) mine.push_back(Tensor::full({i % 7, 3}, DType::kFloat32, i));
    const auto sums = replica.all_reduce(ReduceOp::kSum, mine);
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(sums[static_cast<std::size_t>(i)].shape(), (Shape{i % 7, 3}));
      EXPECT_THAT(numbers(sums[static_cast<std::size_t>(i)]), Each(i * replicas()));
    }
  });
}

TEST_P(AllReduce, GivesTheSameForAnyBytesPerPack) {
  std::vector<std::size_t> lengths{5, 0, 1, 20'000, 700, 3};
  for (const std::size_t bytes_per_pack : {0u, 1u, 100u, 1u << 30}) {
    const MirroredStrategy strategy =
        mirrored(replicas(), {.timeout_seconds = 60, .bytes_per_pack = bytes_per_pack});
    const auto results = strategy.run([&](ReplicaContext& replica) {
      std::vector<Tensor> mine;
      mine.reserve(lengths.size());
      for (const std::size_t length : lengths)
        mine.push_back(
            exact_inputs(replica.replica_id_in_sync_group(), DType::kFloat32, ReduceOp::kSum, length));
      std::vector<Tensor> in_place;
      in_place.reserve(mine.size());
      for (const Tensor& tensor : mine) in_place.push_back(tensor.clone());
      replica.all_reduce_in_place(ReduceOp::kSum, in_place);
      return std::pair(replica.all_reduce(ReduceOp::kSum, mine), in_place);
    });
    for (const auto& [sums, in_place] : results.components()) {
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        const Tensor wanted = exact_result(replicas(), DType::kFloat32, ReduceOp::kSum, lengths[i]);
        EXPECT_TRUE(bitwise_equal(sums[i], wanted)) << bytes_per_pack << " bytes per pack, tensor " << i;
        EXPECT_TRUE(bitwise_equal(in_place[i], wanted)) << bytes_per_pack << " bytes per pack, tensor " << i;
      }
    }
  }
}

TEST_P(AllReduce, MakesTheMeanOfIntegerTensorsFloating) {
  if (replicas() == 1) return;  // then nothing is computed, and the value stays as it is
  strategy_.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const auto [wide, narrow] = replica.all_reduce(
        ReduceOp::kMean, std::pair(Tensor::scalar(std::int64_t{id}), Tensor::full({2}, DType::kUInt8, 200)));
    EXPECT_EQ(wide.dtype(), DType::kFloat64);
    EXPECT_EQ(wide.item<double>(), last() / 2.0);
    EXPECT_EQ(narrow.dtype(), DType::kFloat32);
    EXPECT_THAT(numbers(narrow), Each(200)) << "without wrapping on the way";
  });
}

TEST_P(AllReduce, GivesEachReplicaStorageOfItsOwnAndLeavesTheInputsAlone) {
  const Tensor shared = Tensor::from({3.0f});
  const auto results = strategy_.run([&](ReplicaContext& replica) {
    Tensor sum = replica.all_reduce(ReduceOp::kSum, shared);
    replica.merge_call([](const Strategy&) {});
    sum.fill(replica.replica_id_in_sync_group());
    return sum;
  });
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].item<int>(), static_cast<int>(i));
  EXPECT_EQ(shared.item<float>(), 3);
}

TEST_P(AllReduce, RefusesOtherOperatorsOnEveryReplica) {
  EXPECT_THAT([&] { strategy_.run([](ReplicaContext& r) { return r.all_reduce(ReduceOp::kMax, 1.0); }); },
              ThrowsMessage<InvalidArgument>(HasSubstr("sum or mean, not max")));
  EXPECT_THAT([&] { strategy_.run([](ReplicaContext& r) { return r.all_reduce(ReduceOp::kMean, 1); }); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("int32"), HasSubstr("pass double"))));
}

class AllGather : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(AllGather);

TEST_P(AllGather, GivesEveryReplicaAllPartsAlsoUnevenOnes) {
  const auto results = strategy_.run([](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    return replica.all_gather(Tensor::full({id, 2}, DType::kInt16, id), 0);
  });
  for (const Tensor& all : results.components()) {
    ASSERT_EQ(all.shape(), (Shape{sum_to(last()), 2}));
    int row = 0;
    for (int id = 0; id < replicas(); ++id) {
      for (int i = 0; i < id; ++i) EXPECT_THAT(numbers(all.row(row++)), Each(id));
    }
  }
}

TEST_P(AllGather, ConcatenatesAlongAnyAxis) {
  strategy_.run([&](ReplicaContext& replica) {
    const Tensor mine = Tensor::full({2, 1, 3}, DType::kFloat32, replica.replica_id_in_sync_group());
    for (int axis = 0; axis < 3; ++axis) {
      const Tensor all = replica.all_gather(mine, axis);
      EXPECT_EQ(all.shape(), mine.shape().with(axis, mine.shape()[axis] * replicas()));
      EXPECT_TRUE(bitwise_equal(replica.all_gather(mine, axis - 3), all)) << "the same axis, from the end";
    }
    const Tensor columns = replica.all_gather(mine, 1);
    for (int id = 0; id < replicas(); ++id) EXPECT_THAT(numbers(columns.row(1).row(id)), Each(id));
  });
}

TEST_P(AllGather, TakesNestedStructures) {
  strategy_.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const std::map<std::string, std::vector<Tensor>> mine{
        {"a", {Tensor::full({1}, DType::kBool, id)}},
        {"b", {Tensor::full({id + 1}, DType::kFloat64, id), Tensor()}}};
    const auto all = replica.all_gather(mine, 0);
    EXPECT_EQ(all.at("a")[0].shape(), Shape{replicas()});
    EXPECT_EQ(all.at("a")[0].dtype(), DType::kBool);
    EXPECT_EQ(all.at("b")[0].shape(), Shape{sum_to(replicas())});
    EXPECT_EQ(all.at("b")[1].shape(), Shape{0});
  });
}

TEST_P(AllGather, RefusesScalarsAndAnAxisOutOfRange) {
  const auto gathering = [&](const Tensor& tensor, int axis) {
    return [=, this] {
      strategy_.run([=](ReplicaContext& replica) { return replica.all_gather(tensor, axis); });
    };
  };
  EXPECT_THAT(gathering(Tensor::scalar(1.0), 0), ThrowsMessage<InvalidArgument>(HasSubstr("scalars")));
  EXPECT_THAT(gathering(Tensor::from({1.0}), 1), ThrowsMessage<InvalidArgument>(HasSubstr("axis 1")));
}

TEST(AllReduceOfAStrategyWithHooks, IsToldToThemByEachReplica) {
  std::mutex mutex;
  std::map<int, int> begun;
  std::map<int, int> ended;
  const auto count = [&mutex](std::map<int, int>& calls) {
    return [&](const CallEvent& event) {
      const std::lock_guard lock(mutex);
      calls[event.rank] += event.kind == CollectiveKind::kAllReduce ? 1 : 0;
    };
  };
  const CallHooks hooks{.on_call_begin = count(begun), .on_call_end = count(ended)};
  const MirroredStrategy strategy = mirrored(2, {.hooks = &hooks});
  static_cast<void>(strategy.run([](ReplicaContext& replica) {
    return replica.all_reduce(ReduceOp::kSum, Tensor::full({3}, DType::kFloat32, 1));
  }));
  EXPECT_THAT(begun, ElementsAre(Pair(0, 1), Pair(1, 1)));
  EXPECT_EQ(ended, begun);
}

}  // namespace
}  // namespace cohort::testing
