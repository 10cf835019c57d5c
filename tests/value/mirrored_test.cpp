// Mirrored: equal components, one of which stands for all.
#include <cohort/value/mirrored.h>

#include <sstream>

#include <gmock/gmock.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;

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

}  // namespace
}  // namespace cohort
