// Strategy::reduce without an axis: element by element, over all replicas.
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

/// One-element tensors id+1 of any dtype.
PerReplica<Tensor> counted(const Strategy& strategy, DType dtype) {
  return per_replica(strategy, [&](int id) { return Tensor::full({1}, dtype, id + 1); });
}

class Reduce : public WithReplicas {
 protected:
  [[nodiscard]] double mean() const { return (replicas() + 1) / 2.0; }
};
COHORT_INSTANTIATE_REPLICAS(Reduce);

TEST_P(Reduce, SumsAndAveragesTensorsOfAnyShape) {
  const auto vectors = per_replica(strategy_, [](int id) {
    return vector_of<double>({id + 1.0, 10.0 * (id + 1)});
  });
  EXPECT_THAT(numbers(strategy_.reduce(ReduceOp::kSum, vectors)),
              ElementsAre(sum_to(replicas()), 10 * sum_to(replicas())));
  EXPECT_THAT(numbers(strategy_.reduce(ReduceOp::kMean, vectors)), ElementsAre(mean(), 10 * mean()));
  const auto scalars = per_replica(strategy_, [](int id) { return Tensor::scalar(id + 1.0); });
  EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, scalars).shape(), Shape());
  const auto matrices = per_replica(strategy_, [](int) { return Tensor::zeros({2, 0, 3}, DType::kFloat32); });
  EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, matrices).shape(), (Shape{2, 0, 3}));
}

TEST_P(Reduce, KeepsTheDtypeOfASum) {
  for (const DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;
    const Tensor sum = strategy_.reduce(ReduceOp::kSum, counted(strategy_, dtype));
    EXPECT_EQ(sum.dtype(), dtype);
    EXPECT_EQ(sum.item<double>(), sum_to(replicas())) << to_string(dtype);
  }
}

TEST_P(Reduce, MakesTheMeanOfIntegersFloating) {
  if (replicas() == 1) return;  // then nothing is computed, and the value stays as it is
  for (const DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;
    const DType narrow_or_wide = size_of(dtype) <= 2 ? DType::kFloat32 : DType::kFloat64;
    const Tensor average = strategy_.reduce(ReduceOp::kMean, counted(strategy_, dtype));
    EXPECT_EQ(average.dtype(), is_floating(dtype) ? dtype : narrow_or_wide) << to_string(dtype);
    EXPECT_EQ(average.item<double>(), mean()) << to_string(dtype);
  }
}

TEST_P(Reduce, HasNoSumAndNoMeanOfBool) {
  if (replicas() == 1) return;
  const auto flags = per_replica(strategy_, [](int id) { return Tensor::scalar(id == 0); });
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    const auto refused = ThrowsMessage<InvalidArgument>(HasSubstr(std::string(to_string(op)) + " of bool"));
    EXPECT_THAT([&] { return strategy_.reduce(op, flags); }, refused);
    EXPECT_THAT(
        [&] {
          return strategy_.run(
              [&](ReplicaContext& replica, const Tensor& own) { return replica.all_reduce(op, own); }, flags);
        },
        refused);
  }
}

TEST_P(Reduce, DoesNotWrapTheMeanOfSmallIntegers) {
  const auto hundreds = per_replica(strategy_, [](int) { return Tensor::scalar(std::int8_t{100}); });
  EXPECT_EQ(strategy_.reduce(ReduceOp::kMean, hundreds).item<double>(), 100);
}

TEST_P(Reduce, TakesNumbers) {
  const auto doubles = per_replica(strategy_, [](int id) { return id + 1.0; });
  EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, doubles), sum_to(replicas()));
  EXPECT_EQ(strategy_.reduce(ReduceOp::kMean, doubles), mean());
  const auto integers = per_replica(strategy_, [](int id) { return id + 1; });
  EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, integers), sum_to(replicas()));
  EXPECT_THAT([&] { return strategy_.reduce(ReduceOp::kMean, integers); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("int32"), HasSubstr("pass double"))));
}

TEST_P(Reduce, TakesNestedStructuresOfMixedDtypes) {
  using Value = std::tuple<Tensor, std::map<std::string, Tensor>, float>;
  const auto values = per_replica(strategy_, [](int id) {
    return Value{
        Tensor::scalar(id + 1.0), {{"a", vector_of<std::int64_t>({id, 1})}}, 0.5f * static_cast<float>(id)};
  });
  const auto [first, named, number] = strategy_.reduce(ReduceOp::kSum, values);
  EXPECT_EQ(first.item<double>(), sum_to(replicas()));
  EXPECT_THAT(numbers(named.at("a")), ElementsAre(sum_to(last()), replicas()));
  EXPECT_EQ(named.at("a").dtype(), DType::kInt64);
  EXPECT_EQ(number, 0.5f * static_cast<float>(sum_to(last())));
}

TEST_P(Reduce, OfAnEmptyStructureIsEmpty) {
  const auto nothing = per_replica(strategy_, [](int) { return std::vector<Tensor>(); });
  EXPECT_THAT(strategy_.reduce(ReduceOp::kSum, nothing), IsEmpty());
}

TEST_P(Reduce, LeavesItsInputsAlone) {
  const auto values = per_replica(strategy_, [](int id) { return Tensor::scalar(id + 1.0); });
  strategy_.reduce(ReduceOp::kSum, values).fill(-1);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i].item<int>(), static_cast<int>(i) + 1);
}

TEST_P(Reduce, ReturnsTheMeanOfAPlainValueAsItIs) {
  EXPECT_THAT(numbers(strategy_.reduce(ReduceOp::kMean, vector_of<float>({1, 2}))), ElementsAre(1, 2));
  EXPECT_EQ(strategy_.reduce(ReduceOp::kMean, 3.0), 3.0);
}

TEST_P(Reduce, RefusesTheSumOfAPlainValueUnlessAlone) {
  const Tensor plain = vector_of<float>({1, 2});
  if (replicas() == 1) {
    EXPECT_THAT(numbers(strategy_.reduce(ReduceOp::kSum, plain)), ElementsAre(1, 2));
    return;
  }
  EXPECT_THAT(
      [&] { return strategy_.reduce(ReduceOp::kSum, plain); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("not PerReplica"), HasSubstr("return it from run()"))));
  EXPECT_THROW(static_cast<void>(strategy_.reduce(ReduceOp::kSum, 0.0)), InvalidArgument);
}

// As the original does, which goes through a structure leaf by leaf.
TEST_P(Reduce, LooksAtEachValueOfAMixedStructure) {
  const auto counts = per_replica(strategy_, [](int id) { return Tensor::scalar(id + 1.0); });
  const auto sevens =
      strategy_.extended().broadcast_to(Tensor::scalar(7), strategy_.extended().destinations());
  const auto [mean, plain, mirrored] =
      strategy_.reduce(ReduceOp::kMean, std::tuple(counts, vector_of<int>({4, 5}), sevens));
  EXPECT_EQ(mean.item<double>(), (replicas() + 1) / 2.0);
  EXPECT_EQ(plain.dtype(), DType::kInt32) << "a plain value is its own mean";
  EXPECT_THAT(numbers(plain), ElementsAre(4, 5));
  EXPECT_EQ(mirrored.item<int>(), 7);
  const auto sums = strategy_.reduce(ReduceOp::kSum, std::map<std::string, Mirrored<Tensor>>{{"s", sevens}});
  EXPECT_EQ(sums.at("s").item<int>(), 7 * replicas()) << "inside a structure, components are contributions";
}

TEST_P(Reduce, PutsMixedStructuresOnTheirDestinations) {
  const auto counts = per_replica(strategy_, [](int id) { return Tensor::scalar(id + 1.0); });
  const auto means = strategy_.extended().reduce_to(
      ReduceOp::kMean, std::pair(Tensor::scalar(4), std::vector{counts, counts}), Device::cpu(5));
  EXPECT_EQ(means.size(), 1);
  EXPECT_EQ(means[0].first.item<int>(), 4);
  EXPECT_EQ(means[0].first.device(), Device::cpu(5));
  EXPECT_EQ(means[0].second[1].item<double>(), (replicas() + 1) / 2.0);
  const auto gathered = strategy_.gather(
      std::pair(vector_of<int>({4}), per_replica(strategy_, [](int id) { return vector_of<int>({id}); })), 0);
  EXPECT_THAT(numbers(gathered.first), ElementsAre(4)) << "of this worker, once";
  EXPECT_EQ(gathered.second.elements(), replicas());
}

TEST_P(Reduce, KnowsOnlySumAndMean) {
  const auto values = counted(strategy_, DType::kFloat32);
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProd}) {
    const auto refused = ThrowsMessage<InvalidArgument>(
        AllOf(HasSubstr("sum or mean, not " + std::string(to_string(op))), HasSubstr("use a Communicator")));
    EXPECT_THAT([&] { return strategy_.reduce(op, values); }, refused);
    EXPECT_THAT([&] { return strategy_.reduce(op, values, 0); }, refused);
    EXPECT_THAT([&] { return strategy_.reduce(op, 1.0); }, refused);
  }
}

TEST_P(Reduce, RefusesAValueOfAStrategyWithOtherReplicas) {
  const PerReplica foreign(
      std::vector<Tensor>(static_cast<std::size_t>(replicas()) + 1, Tensor::scalar(1.0)));
  const auto refused =
      ThrowsMessage<InvalidArgument>(HasSubstr(std::to_string(replicas()) + " local replicas"));
  EXPECT_THAT([&] { return strategy_.reduce(ReduceOp::kMean, foreign); }, refused);
  EXPECT_THAT([&] { return strategy_.reduce(ReduceOp::kMean, foreign, 0); }, refused);
  EXPECT_THAT([&] { return strategy_.reduce(ReduceOp::kSum, PerReplica<Tensor>(), 0); }, refused);
  EXPECT_THAT([&] { return strategy_.reduce(ReduceOp::kSum, std::tuple(foreign, 1.0)); }, refused);
  EXPECT_THAT([&] { return strategy_.gather(std::vector{foreign}, 0); }, refused);
}

class ReduceOfSeveral : public WithSeveralReplicas {};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(ReduceOfSeveral);

TEST_P(ReduceOfSeveral, NamesTheReplicaWhoseShapeDiffers) {
  const auto values =
      per_replica(strategy_, [&](int id) { return Tensor::zeros({id == last() ? 3 : 2}, DType::kFloat32); });
  EXPECT_THAT([&] { return strategy_.reduce(ReduceOp::kSum, values); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("replica " + std::to_string(last()) + " (worker 0"),
                        HasSubstr(") has float32[3], replica 0 (worker 0"),
                        HasSubstr(") has float32[2]; without an axis, shapes must agree"))));
}

TEST_P(ReduceOfSeveral, NamesTheReplicaWhoseDtypeDiffers) {
  const auto values = per_replica(strategy_, [&](int id) {
    return Tensor::zeros({2}, id == last() ? DType::kFloat64 : DType::kFloat32);
  });
  EXPECT_THAT([&] { return strategy_.reduce(ReduceOp::kSum, values); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("float64[2], replica 0 (worker 0"), HasSubstr(") has float32[2]"))));
}

TEST_P(ReduceOfSeveral, NamesTheReplicaWhoseStructureDiffers) {
  const auto values = per_replica(
      strategy_, [&](int id) { return std::vector<Tensor>(id == last() ? 2 : 1, Tensor::scalar(1.0)); });
  EXPECT_THAT(
      [&] { return strategy_.reduce(ReduceOp::kSum, values); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("replica " + std::to_string(last()) + " (worker 0"),
                                           HasSubstr(") has a structure with other keys, lengths"))));
}

TEST_P(ReduceOfSeveral, DoesNotMixUpKeys) {
  const auto values = strategy_.run([&](ReplicaContext& replica) {
    return std::map<std::string, double>{{replica.replica_id_in_sync_group() == last() ? "b" : "a", 1.0}};
  });
  EXPECT_THAT([&] { return strategy_.reduce(ReduceOp::kSum, values); },
              ThrowsMessage<InvalidArgument>(HasSubstr("other keys")));
}

TEST_P(ReduceOfSeveral, RefusesTheSumOfAPlainValueBesideOthers) {
  const auto counts = per_replica(strategy_, [](int id) { return Tensor::scalar(id + 1.0); });
  EXPECT_THAT([&] { return strategy_.reduce(ReduceOp::kSum, std::pair(counts, Tensor::scalar(5.0))); },
              ThrowsMessage<InvalidArgument>(HasSubstr("not PerReplica")));
}

TEST_P(ReduceOfSeveral, RefusesSumsOfBool) {
  const auto flags = per_replica(strategy_, [](int) { return Tensor::zeros({2}, DType::kBool); });
  EXPECT_THAT([&] { return strategy_.reduce(ReduceOp::kSum, flags); },
              ThrowsMessage<InvalidArgument>(HasSubstr("sum of bool")));
}

}  // namespace
}  // namespace cohort::testing
