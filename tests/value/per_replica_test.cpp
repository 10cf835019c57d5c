// Distributed values: PerReplica, Mirrored, and structures of them.
#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include <cohort/device/tensor.h>
#include <cohort/value/mirrored.h>
#include <cohort/value/per_replica.h>
#include <cohort/value/regroup.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Pretends that this thread runs local replica `local_replica`.
class InsideReplica {
 public:
  explicit InsideReplica(int local_replica)
      : scope_({ContextKind::kReplica, nullptr, nullptr, local_replica}) {}

 private:
  ContextScope scope_;
};

template <class T>
std::string printed(const PerReplica<T>& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

TEST(PerReplica, HoldsOneValuePerReplica) {
  const PerReplica value(std::vector<std::string>{"a", "b"});
  EXPECT_EQ(value.size(), 2u);
  EXPECT_EQ(value[1], "b");
  EXPECT_THAT(value.components(), ElementsAre("a", "b"));
}

TEST(PerReplica, NamesAComponentThatItDoesNotHave) {
  const PerReplica value(std::vector{1, 2});
  EXPECT_THAT([&] { return value[2]; },
              ThrowsMessage<InvalidArgument>("PerReplica has 2 components, no number 2"));
  EXPECT_THROW(static_cast<void>(PerReplica<int>()[0]), InvalidArgument);
}

TEST(PerReplica, PrintsEveryComponentWithItsNumber) {
  EXPECT_EQ(printed(PerReplica(std::vector{1, 2, 3})), "PerReplica:{ 0: 1, 1: 2, 2: 3 }");
  EXPECT_EQ(printed(PerReplica(std::vector{Tensor::from({1.5f})})), "PerReplica:{ 0: float32[1] {1.5} }");
}

TEST(PerReplica, IsItsOwnComponentInsideAReplica) {
  const PerReplica value(std::vector{10, 20, 30});
  for (int replica = 0; replica < 3; ++replica) {
    const InsideReplica inside(replica);
    EXPECT_EQ(value.local(), 10 * (replica + 1));
  }
}

TEST(PerReplica, HasNoComponentForAReplicaOfALargerStrategy) {
  const InsideReplica inside(3);
  EXPECT_THROW(static_cast<void>(PerReplica(std::vector{10, 20, 30}).local()), InvalidArgument);
}

TEST(PerReplica, IsNoOperandInCrossReplicaContext) {
  const ContextScope scope({ContextKind::kCrossReplica, nullptr, nullptr, -1});
  EXPECT_THAT([] { return PerReplica(std::vector{10}).local(); },
              ThrowsMessage<WrongContext>(
                  AllOf(HasSubstr("not inside a replica context"), HasSubstr("strategy.local_results"))));
}

TEST(PerReplica, OfSeveralReplicasIsNoOperandOutsideAnyScope) {
  EXPECT_THAT(
      [] {
        return PerReplica(std::vector{10, 20}).local();
      },
      ThrowsMessage<WrongContext>(HasSubstr("not inside a replica context")));
  EXPECT_EQ(PerReplica(std::vector{10}).local(), 10) << "there, the caller is replica 0 of 1";
}

TEST(PerReplica, OfOneOfSeveralWorkersIsNoOperandOutsideAnyScope) {
  const PerReplica value(std::vector{10}, 2);
  EXPECT_THAT([&] { return value.local(); }, ThrowsMessage<WrongContext>(HasSubstr("strategy.reduce")))
      << "each worker would go on with a value of its own";
  const InsideReplica inside(0);
  EXPECT_EQ(value.local(), 10);
}

TEST(PerReplica, HoldsTruthValues) {
  const PerReplica value(std::vector<bool>{true, false});
  EXPECT_TRUE(value[0]);
  EXPECT_FALSE(value[1]);
  EXPECT_THAT(value.components(), ElementsAre(true, false));
  EXPECT_EQ(printed(value), "PerReplica:{ 0: 1, 1: 0 }");
  const InsideReplica inside(1);
  EXPECT_FALSE(value.local());
}

// Mirrored: equal components, one of which stands for all.

Mirrored<Tensor> on_three_devices() {
  return Mirrored(std::vector{Tensor::full({}, DType::kInt32, 7, Device::cpu(0)),
                              Tensor::full({}, DType::kInt32, 7, Device::cpu(1)),
                              Tensor::full({}, DType::kInt32, 7, Device::cpu(2))});
}

/// Which component a use of `value` means.
std::ptrdiff_t used(const Mirrored<Tensor>& value) { return &value.local() - value.components().data(); }

TEST(Mirrored, StandsForTheFirstComponentWhereNoDeviceWasChosen) {
  const Mirrored<Tensor> value = on_three_devices();
  EXPECT_EQ(used(value), 0) << "outside any scope";
  const ContextScope scope(ContextMode::cross_replica(nullptr));
  EXPECT_EQ(used(value), 0) << "in cross-replica context";
}

TEST(Mirrored, StandsForTheComponentOnTheCurrentDevice) {
  const Mirrored<Tensor> value = on_three_devices();
  const DeviceScope second(Device::cpu(1));
  EXPECT_EQ(used(value), 1);
  const ContextScope scope(ContextMode::cross_replica(nullptr));
  EXPECT_EQ(used(value), 1) << "a scope does not change the device";
  {
    const DeviceScope third(Device::cpu(2));
    EXPECT_EQ(used(value), 2);
  }
  EXPECT_EQ(used(value), 1);
  const DeviceScope elsewhere(Device::cpu(5));
  EXPECT_EQ(used(value), 0) << "no component there";
}

TEST(Mirrored, StandsForTheComponentOfTheReplicaThatRunsOrIsUpdated) {
  const Mirrored<Tensor> value = on_three_devices();
  for (const ContextKind kind : {ContextKind::kReplica, ContextKind::kUpdate}) {
    for (int replica = 0; replica < 3; ++replica) {
      const ContextScope scope({kind, nullptr, nullptr, replica, Device::cpu(0)});
      EXPECT_EQ(used(value), replica);
    }
  }
}

TEST(Mirrored, OfFewerComponentsThanReplicasStandsForItsFirst) {
  const ContextScope scope({ContextKind::kReplica, nullptr, nullptr, 2});
  EXPECT_EQ(Mirrored(std::vector{5}).local(), 5);
}

TEST(Mirrored, IsAnOperandEverywhere) {
  const Mirrored value(std::vector{2.5, 2.5});
  EXPECT_EQ(value + 1, 3.5);
  EXPECT_EQ(2 * value, 5);
  const ContextScope scope(ContextMode::cross_replica(nullptr));
  EXPECT_TRUE(value < 3);
  const Mirrored<Tensor> tensors = on_three_devices();
  const Tensor& tensor = tensors;
  EXPECT_EQ(&tensor, &tensors[0]);
}

TEST(Mirrored, WithoutComponentsIsNoOperand) {
  EXPECT_THROW(static_cast<void>(Mirrored<int>().local()), InvalidArgument);
}

TEST(Mirrored, PrintsEveryComponentWithItsNumber) {
  std::ostringstream text;
  text << Mirrored(std::vector{1.5, 1.5});
  EXPECT_EQ(text.str(), "Mirrored:{ 0: 1.5, 1: 1.5 }");
}

TEST(Mirrored, HoldsTruthValues) {
  const Mirrored value(std::vector<bool>{true, true});
  EXPECT_THAT(value.components(), ElementsAre(true, true));
  EXPECT_TRUE(value);
}

// Structures of distributed values, taken apart and put together.

TEST(Regroup, RefusesStructuresThatDiffer) {
  EXPECT_THAT(
      [] {
        return regroup(PerReplica(std::vector<std::vector<int>>{{1}, {1, 2}}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("replica 1 has 2 elements, replica 0 has 1")));
  EXPECT_THAT(
      [] {
        return regroup(PerReplica(std::vector<std::map<int, int>>{{{1, 1}}, {{1, 1}}, {{2, 1}}}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("replica 2 has a map with other keys")));
  EXPECT_THROW(static_cast<void>(regroup(PerReplica<int>())), InvalidArgument);
}

TEST(Regroup, KeepsWhatIsMirroredMirrored) {
  using Pair = std::pair<int, std::vector<double>>;
  const auto [numbers, list] = regroup(Mirrored(std::vector<Pair>{{1, {2.5}}, {1, {2.5}}}));
  static_assert(std::is_same_v<decltype(numbers), const Mirrored<int>>);
  EXPECT_THAT(numbers.components(), ElementsAre(1, 1));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0] + 0, 2.5) << "an operand outside replicas, too";
}

TEST(Regroup, KeepsOneWorkersPartOfManyReplicasAPart) {
  const auto [number, list] = regroup(PerReplica(std::vector<std::pair<int, std::vector<int>>>{{1, {2}}}, 3));
  EXPECT_THROW(static_cast<void>(number + 1), WrongContext);
  EXPECT_THROW(static_cast<void>(list[0] + 1), WrongContext);
  EXPECT_EQ(regroup(PerReplica(std::vector<std::pair<int, int>>{{1, 2}})).first + 1, 2);
}

TEST(Regroup, KeepsOptionalsPerReplica) {
  const auto grouped = regroup(PerReplica(std::vector<std::optional<int>>{{}, 5}));
  EXPECT_THAT(grouped.components(), ElementsAre(std::nullopt, 5));
}

TEST(SelectReplica, TakesComponentsFromAnywhereInAStructure) {
  const PerReplica own(std::vector{1, 2});
  const std::map<std::string, std::pair<PerReplica<int>, int>> map{{"k", {own, 9}}};
  const std::tuple value(own, std::vector{own, own}, std::optional(own), Mirrored(std::vector{3}), 4.5, map);
  const auto second = select_replica(1, value);
  EXPECT_EQ(second, std::tuple(2, std::vector{2, 2}, std::optional(2), 3, 4.5,
                               (std::map<std::string, std::pair<int, int>>{{"k", {2, 9}}})));
  EXPECT_THAT([&] { return select_replica(2, value); },
              ThrowsMessage<InvalidArgument>(HasSubstr("PerReplica has 2 components, no number 2")));
}

TEST(SelectReplica, LeavesOtherValuesAsTheyAre) {
  EXPECT_EQ(select_replica(3, std::string("text")), "text");
  EXPECT_EQ(select_replica(3, std::optional<PerReplica<int>>()), std::nullopt);
}

}  // namespace
}  // namespace cohort
