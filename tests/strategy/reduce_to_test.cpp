// StrategyExtended: reductions and broadcasts to destinations.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

#include "fake_cluster.h"
#include "strategies.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

template <class T>
std::vector<double> items(const Mirrored<T>& value) {
  std::vector<double> result;
  for (const Tensor& component : value.components()) result.push_back(component.item<double>());
  return result;
}

/// id + 1, on the replica's own device.
PerReplica<Tensor> counted(const Strategy& strategy) {
  return strategy.run([](ReplicaContext& replica) {
    return Tensor::scalar(replica.replica_id_in_sync_group() + 1.0, replica.device());
  });
}

class ReduceTo : public WithReplicas {
 protected:
  [[nodiscard]] StrategyExtended& extended() const { return strategy_.extended(); }
  [[nodiscard]] double sum() const { return sum_to(replicas()); }
  [[nodiscard]] double mean() const { return sum() / replicas(); }
};
COHORT_INSTANTIATE_REPLICAS(ReduceTo);

TEST_P(ReduceTo, LeavesAComponentOnEachDestination) {
  const auto value = counted(strategy_);
  const Mirrored<Tensor> sums = extended().reduce_to("sum", value, value);
  EXPECT_THAT(items(sums), AllOf(SizeIs(replicas()), Each(sum())));
  for (int i = 0; i < replicas(); ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)].device(), Device::cpu(i));
  EXPECT_THAT(items(extended().reduce_to(ReduceOp::kMean, value, value)), Each(mean()));
}

TEST_P(ReduceTo, LeavesTheBareValueOnOneDevice) {
  const auto value = counted(strategy_);
  for (const Destinations& there : {Destinations("/cpu:3"), Destinations(Device::cpu(3)),
                                    Destinations(Tensor::zeros({}, DType::kBool, Device::cpu(3)))}) {
    const Mirrored<Tensor> sums = extended().reduce_to("sum", value, there);
    EXPECT_THAT(items(sums), ElementsAre(sum()));
    EXPECT_EQ(sums[0].device(), Device::cpu(3));
    const Tensor& bare = sums;
    EXPECT_EQ(bare.item<double>(), sum());
  }
}

TEST_P(ReduceTo, DoesNotChangeAVariableItPointsAt) {
  const auto scope = strategy_.scope();
  const Variable variable({.initial_value = Tensor::scalar(1.0)});
  const Mirrored<Tensor> sums = extended().reduce_to("sum", counted(strategy_), variable);
  EXPECT_THAT(items(sums), AllOf(SizeIs(replicas()), Each(sum())));
  for (const Tensor& component : variable.components()) EXPECT_EQ(component.item<double>(), 1);
}

TEST_P(ReduceTo, TakesStructures) {
  const auto values = strategy_.run([](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    return std::pair(Tensor::scalar(id + 1.0), std::vector<double>{1.0, static_cast<double>(id)});
  });
  const auto sums = extended().reduce_to("sum", values, extended().destinations());
  ASSERT_THAT(sums.components(), SizeIs(replicas()));
  for (const auto& [tensor, numbers] : sums.components()) {
    EXPECT_EQ(tensor.item<double>(), sum());
    EXPECT_THAT(numbers, ElementsAre(replicas(), sum_to(last())));
  }
  const auto regrouped = regroup(values);
  EXPECT_EQ(strategy_.reduce("sum", regrouped).second,
            (std::vector<double>{1.0 * replicas(), 1.0 * sum_to(last())}));
}

TEST_P(ReduceTo, TakesEveryBatchAtOnce) {
  using Pair = std::pair<PerReplica<Tensor>, Destinations>;
  const auto numbers = counted(strategy_);
  const auto vectors = per_replica(strategy_, [](int id) { return vector_of<double>({1.0 * id, 1}); });
  const std::vector<Pair> pairs{{numbers, numbers}, {vectors, numbers}, {numbers, "cpu:0"}};
  const auto means = extended().batch_reduce_to("mean", pairs);
  ASSERT_THAT(means, SizeIs(3));
  EXPECT_THAT(items(means[0]), AllOf(SizeIs(replicas()), Each(mean())));
  for (const Tensor& component : means[1].components())
    EXPECT_THAT(testing::numbers(component), ElementsAre(mean() - 1, 1));
  EXPECT_THAT(items(means[2]), ElementsAre(mean()));
}

TEST_P(ReduceTo, KeepsThePlacesOfDenseAndSparseValues) {
  using Pair = std::pair<PerReplica<TensorOrSlices>, Destinations>;
  const auto sparse = per_replica(strategy_, [](int id) {
    return TensorOrSlices(
        IndexedSlices{Tensor::full({1, 2}, DType::kFloat32, id), Tensor::from({id}), {8, 2}});
  });
  const auto dense = per_replica(strategy_, [](int id) { return TensorOrSlices(Tensor::scalar(id + 1.0)); });
  const std::vector<Pair> pairs{{sparse, "cpu:0"}, {dense, "cpu:0"}, {sparse, "cpu:0"}};
  const auto sums = extended().batch_reduce_to("sum", pairs);
  EXPECT_EQ(std::get<IndexedSlices>(sums[0][0]).dense_shape, (Shape{8, 2}));
  EXPECT_EQ(std::get<Tensor>(sums[1][0]).item<double>(), sum());
  EXPECT_EQ(values_of(sums[2][0]).shape(), (Shape{replicas(), 2}));
}

TEST_P(ReduceTo, ReturnsTheMeanOfWhatIsTheSameEverywhere) {
  const auto value = counted(strategy_);
  const Mirrored<Tensor> mirrored = extended().reduce_to("mean", value, value);
  EXPECT_EQ(items(extended().reduce_to("mean", mirrored, value)), items(mirrored));
  EXPECT_EQ(strategy_.reduce("mean", mirrored).item<double>(), mean());
  const auto sum_of_mirrored = [&] { return strategy_.reduce("sum", mirrored); };
  if (replicas() == 1) {
    EXPECT_EQ(sum_of_mirrored().item<double>(), 1) << "a value on one device is a plain one";
    return;
  }
  EXPECT_THAT(sum_of_mirrored, ThrowsMessage<InvalidArgument>(HasSubstr("not PerReplica")));
  EXPECT_THROW(static_cast<void>(extended().reduce_to("sum", Tensor::scalar(2.0), value)), InvalidArgument);
  EXPECT_THAT(items(extended().reduce_to("mean", Tensor::scalar(2.0), value)), ElementsAre(2));
}

TEST_P(ReduceTo, TakesVariablesByTheirKind) {
  const auto scope = strategy_.scope();
  const Variable mirrored({.initial_value = Tensor::scalar(2.0)});
  EXPECT_EQ(strategy_.reduce("mean", mirrored).item<double>(), 2);
  EXPECT_THAT([&] { return strategy_.reduce("sum", mirrored); },
              ThrowsMessage<InvalidArgument>(HasSubstr("not PerReplica")))
      << "also with one replica";
  for (const VariableAggregation aggregation :
       {VariableAggregation::kNone, VariableAggregation::kSum, VariableAggregation::kMean}) {
    const Variable own({.initial_value = Tensor::scalar(0.0),
                        .synchronization = VariableSynchronization::kOnRead,
                        .aggregation = aggregation});
    strategy_.run([&](ReplicaContext& replica) { own.assign(replica.replica_id_in_sync_group() + 1.0); });
    EXPECT_EQ(strategy_.reduce("sum", own).item<double>(), sum());
    EXPECT_EQ(strategy_.reduce("mean", own).item<double>(), mean());
  }
}

TEST_P(ReduceTo, GathersStructures) {
  const auto values = per_replica(strategy_, [](int id) {
    return std::map<std::string, std::vector<Tensor>>{{"a", {vector_of<double>({1.0 * id})}},
                                                      {"b", {Tensor::full({id, 2}, DType::kBool, 1)}}};
  });
  const auto all = strategy_.gather(values, 0);
  EXPECT_EQ(all.at("a")[0].shape(), Shape{replicas()});
  EXPECT_EQ(all.at("a")[0].row(-1).item<int>(), last());
  EXPECT_EQ(all.at("b")[0].shape(), (Shape{sum_to(last()), 2}));
  EXPECT_THAT(numbers(strategy_.gather(vector_of<double>({1, 2}), -1)), ElementsAre(1, 2))
      << "a plain one as it is";
}

TEST_P(ReduceTo, SumsWhatEachReplicaHasOfAPlainTensorAlongAnAxis) {
  const Tensor plain = vector_of<double>({1, 2});
  EXPECT_EQ(strategy_.reduce("sum", plain, 0).item<double>(), 3 * replicas());
  EXPECT_EQ(strategy_.reduce("mean", plain, 0).item<double>(), 1.5);
}

TEST_P(ReduceTo, RefusesDestinationsThatAreNone) {
  const auto value = counted(strategy_);
  EXPECT_THAT([&] { return extended().reduce_to("sum", value, ""); },
              ThrowsMessage<InvalidArgument>(HasSubstr("destinations cannot be empty")));
  EXPECT_THROW(static_cast<void>(extended().reduce_to("sum", value, "/nonsense:9")), InvalidArgument);
  EXPECT_THROW(static_cast<void>(extended().reduce_to("sum", value, PerReplica<Tensor>())), InvalidArgument);
  EXPECT_THROW(static_cast<void>(extended().reduce_to("sum", Mirrored<Tensor>(), value)), InvalidArgument);
}

TEST_P(ReduceTo, TakesOperatorsAsText) {
  const auto value = counted(strategy_);
  for (const char* name : {"sum", "Sum", "SUM"})
    EXPECT_EQ(strategy_.reduce(name, value).item<double>(), sum());
  EXPECT_EQ(strategy_.reduce(std::string_view("mean"), value).item<double>(), mean());
  EXPECT_THAT([&] { return strategy_.reduce("max", value); },
              ThrowsMessage<InvalidArgument>(HasSubstr("sum or mean, not max")));
  for (const char* name : {"", "most"}) {
    EXPECT_THAT(
        [&] { return strategy_.reduce(name, value); },
        ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("unknown reduce op"), HasSubstr("sum, mean"))));
  }
}

TEST_P(ReduceTo, IsForCrossReplicaContext) {
  strategy_.run([&] {
    const auto refused = ThrowsMessage<WrongContext>(HasSubstr("merge_call"));
    const Tensor value = Tensor::scalar(1.0);
    using Pair = std::pair<Tensor, Destinations>;
    EXPECT_THAT([&] { return extended().reduce_to("sum", value, value); }, refused);
    EXPECT_THAT([&] { return extended().batch_reduce_to("sum", std::vector<Pair>()); }, refused);
    EXPECT_THAT([&] { return extended().broadcast_to(value, value); }, refused);
  });
}

TEST_P(ReduceTo, LeavesTheResultOfReduceOnTheCurrentDevice) {
  const auto value = counted(strategy_);
  EXPECT_EQ(strategy_.reduce("sum", value).device(), Device::cpu(0));
  const DeviceScope elsewhere(Device::cpu(5));
  EXPECT_EQ(strategy_.reduce("sum", value).device(), Device::cpu(5));
}

TEST_P(ReduceTo, BroadcastsToDestinations) {
  const Mirrored<Tensor> copies = extended().broadcast_to(Tensor::scalar(3.0), extended().destinations());
  EXPECT_THAT(items(copies), AllOf(SizeIs(replicas()), Each(3)));
  EXPECT_EQ(copies[static_cast<std::size_t>(last())].device(), Device::cpu(last()));
  EXPECT_THAT(items(extended().broadcast_to(Tensor::scalar(3.0), "cpu:0")), ElementsAre(3));
  EXPECT_EQ(extended().broadcast_to(3.0, "cpu:0"), 3.0) << "numbers stay numbers";
  const IndexedSlices slices{Tensor::from({1.0f}), Tensor::from({0}), {2}};
  EXPECT_THAT(extended().broadcast_to(slices, extended().destinations()).components(), SizeIs(replicas()));
}

TEST(ReduceToByDefault, HasOneReplicaAndNobodyToBroadcastTo) {
  StrategyExtended& extended = get_strategy().extended();
  EXPECT_THAT(items(extended.reduce_to("sum", Tensor::scalar(2.0), "cpu:0")), ElementsAre(2));
  EXPECT_THROW(static_cast<void>(extended.broadcast_to(Tensor::scalar(2.0), "cpu:0")), Unimplemented);
  EXPECT_THROW(static_cast<void>(extended.broadcast_to(2.0, "cpu:0")), Unimplemented);
  const OneDeviceStrategy one;
  EXPECT_THAT(items(one.extended().broadcast_to(Tensor::scalar(2.0), "cpu:0")), ElementsAre(2));
}

TEST(ReduceToOverWorkers, CountsPlainValuesOncePerWorker) {
  for (const int workers : {1, 2, 3, 4}) {
    for_each_worker(workers, [&](Bootstrap& worker) {
      const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60});
      StrategyExtended& extended = strategy.extended();
      const auto value = counted(strategy);
      const double sum = sum_to(workers);
      EXPECT_THAT(items(extended.reduce_to("sum", value, value)), ElementsAre(sum));
      EXPECT_THAT(items(extended.reduce_to("mean", value, "cpu:0")), ElementsAre(sum / workers));
      const Tensor plain = vector_of<double>({1, 2});
      EXPECT_THAT(numbers(strategy.reduce("sum", plain)), ElementsAre(workers, 2 * workers));
      EXPECT_THAT(numbers(strategy.reduce("mean", plain)), ElementsAre(1, 2));
      EXPECT_EQ(strategy.reduce("sum", worker.rank() + 1.0), sum);
      const Mirrored<Tensor> mean = extended.reduce_to("mean", value, value);
      EXPECT_EQ(strategy.reduce("sum", mean).item<double>(), sum) << "on one device, it is a plain value";
      EXPECT_THAT(items(extended.broadcast_to(Tensor::scalar(worker.rank() + 0.0), "cpu:0")),
                  ElementsAre(worker.rank()));
      const std::vector<std::pair<PerReplica<Tensor>, Destinations>> pairs{{value, value}, {value, "cpu:1"}};
      for (const auto& result : extended.batch_reduce_to("sum", pairs))
        EXPECT_THAT(items(result), ElementsAre(sum));
    });
  }
}

TEST(ReduceToOverWorkers, GathersPlainValuesOfAllWorkers) {
  for_each_worker(3, [](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60});
    EXPECT_THAT(numbers(strategy.gather(vector_of<double>({1, 2}), 0)), ElementsAre(1, 2, 1, 2, 1, 2));
    const auto own = per_replica(strategy, [](int id) {
      return std::vector<Tensor>{Tensor::full({1, id}, DType::kInt8, id)};
    });
    EXPECT_THAT(numbers(strategy.gather(own, -1)[0]), ElementsAre(1, 2, 2));
    const Variable variable = [&] {
      const auto scope = strategy.scope();
      return Variable({.initial_value = Tensor::scalar(2.0)});
    }();
    EXPECT_EQ(strategy.reduce("mean", variable).item<double>(), 2);
    EXPECT_THROW(static_cast<void>(strategy.reduce("sum", variable)), InvalidArgument);
  });
}

TEST(ReduceToOverWorkers, NamesTheWorkerWhoseKeysDiffer) {
  for_each_worker(3, [](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60});
    const std::map<std::string, double> value{{worker.rank() == 1 ? "a" : "b", 1.0}};
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { return strategy.reduce("sum", value); }),
                AllOf(HasSubstr("reduces (sum) {a: float64}"),
                      HasSubstr("each of the other 2 reduces (sum) {b: float64}")));
  });
}

}  // namespace
}  // namespace cohort::testing
