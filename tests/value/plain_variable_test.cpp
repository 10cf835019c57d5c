// Variables made outside any scope: one component, no strategy.
#include <limits>

#include <gmock/gmock.h>

#include <cohort/value/variable.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

Variable variable_of(const Tensor& initial_value) {
  return Variable({.name = "w", .initial_value = initial_value});
}

TEST(PlainVariable, StartsWithZeros) {
  const Variable variable({.shape = {2, 3}, .dtype = DType::kFloat64, .name = "weights"});
  EXPECT_EQ(variable.name(), "weights");
  EXPECT_EQ(variable.shape(), (Shape{2, 3}));
  EXPECT_EQ(variable.dtype(), DType::kFloat64);
  EXPECT_THAT(variable.read().span<double>(), Each(0));
  EXPECT_THAT(variable.components(), SizeIs(1));
}

TEST(PlainVariable, IsAScalarThatTrainsUnlessToldOtherwise) {
  const Variable variable((VariableOptions()));
  EXPECT_EQ(variable.shape(), Shape());
  EXPECT_EQ(variable.dtype(), DType::kFloat32);
  EXPECT_TRUE(variable.trainable());
  EXPECT_EQ(variable.aggregation(), VariableAggregation::kNone);
  EXPECT_FALSE(Variable({.trainable = false}).trainable());
}

TEST(PlainVariable, TakesShapeAndDtypeFromItsInitialValue) {
  const Tensor initial = Tensor::from<std::int16_t>({1, 2, 3});
  const Variable variable = variable_of(initial);
  EXPECT_EQ(variable.shape(), Shape{3});
  EXPECT_EQ(variable.dtype(), DType::kInt16);
  initial.fill(9);
  EXPECT_THAT(variable.read().span<std::int16_t>(), ElementsAre(1, 2, 3)) << "the value was copied";
}

TEST(PlainVariable, RefusesAShapeThatContradictsItsInitialValue) {
  EXPECT_THAT(
      [] {
        return Variable({.shape = {2}, .name = "w", .initial_value = Tensor::from({1.0f, 2.0f, 3.0f})});
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr("variable 'w'"), HasSubstr("[2]"), HasSubstr("float32[3]"))));
  EXPECT_NO_THROW(Variable({.shape = {1}, .initial_value = Tensor::from({1.0f})}));
}

TEST(PlainVariable, HasNoUseForSynchronizationAndAggregation) {
  for (const auto synchronization : {VariableSynchronization::kAuto, VariableSynchronization::kNone,
                                     VariableSynchronization::kOnWrite, VariableSynchronization::kOnRead}) {
    for (const auto aggregation : {VariableAggregation::kNone, VariableAggregation::kSum,
                                   VariableAggregation::kMean, VariableAggregation::kOnlyFirstReplica}) {
      const Variable variable({.initial_value = Tensor::scalar(10),
                               .synchronization = synchronization,
                               .aggregation = aggregation});
      EXPECT_EQ(variable.synchronization(), synchronization);
      EXPECT_EQ(variable.aggregation(), aggregation);
      EXPECT_EQ(variable.assign_add(3).read().item<int>(), 13);
      EXPECT_EQ(variable.assign(7).read().item<int>(), 7);
    }
  }
}

TEST(PlainVariable, TrainsUnlessItIsOnReadOrTold) {
  EXPECT_TRUE(Variable({.synchronization = VariableSynchronization::kOnWrite}).trainable());
  EXPECT_FALSE(Variable({.synchronization = VariableSynchronization::kOnRead}).trainable());
  EXPECT_TRUE(Variable({.synchronization = VariableSynchronization::kOnRead, .trainable = true}).trainable());
}

TEST(PlainVariable, IsReadAsACopy) {
  const Variable variable = variable_of(Tensor::from({1.0f, 2.0f}));
  variable.read().fill(9);
  EXPECT_THAT(variable.read().span<float>(), ElementsAre(1, 2));
}

TEST(PlainVariable, IsAHandle) {
  const Variable variable = variable_of(Tensor::scalar(1.0f));
  const Variable same = variable;  // NOLINT(performance-unnecessary-copy-initialization): what is tested
  same.assign(5.0f);
  EXPECT_EQ(variable.read().item<float>(), 5);
  EXPECT_EQ(variable, same);
  EXPECT_FALSE(variable == variable_of(Tensor::scalar(1.0f)));
}

TEST(PlainVariable, IsAssignedAddedToAndSubtractedFrom) {
  const Variable variable = variable_of(Tensor::from({1.0, 2.0}));
  variable.assign(Tensor::from({10.0, 20.0}));
  variable.assign_add(Tensor::from({0.5, 1.0}));
  EXPECT_THAT(variable.read().span<double>(), ElementsAre(10.5, 21));
  variable.assign_sub(Tensor::from({10.0, 1.0}));
  EXPECT_THAT(variable.read().span<double>(), ElementsAre(0.5, 20));
}

TEST(PlainVariable, OfEveryDtypeTakesNumbers) {
  for (const DType dtype : kAllDTypes) {
    const Variable variable({.dtype = dtype});
    variable.assign(1);
    EXPECT_EQ(variable.read().item<double>(), 1) << to_string(dtype);
    if (dtype == DType::kBool) continue;
    variable.assign_add(4.0);
    EXPECT_EQ(variable.read().item<double>(), 5) << to_string(dtype);
    variable.assign_sub(std::uint8_t{2});
    EXPECT_EQ(variable.read().item<double>(), 3) << to_string(dtype);
  }
}

TEST(PlainVariable, RefusesNumbersThatItCannotHold) {
  const Variable variable({.dtype = DType::kInt8, .name = "count"});
  EXPECT_THAT([&] { variable.assign(1.5); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("variable 'count' is int8"), HasSubstr("cannot hold 1.5"))));
  EXPECT_THROW(variable.assign_add(200), InvalidArgument);
  EXPECT_THROW(Variable({.dtype = DType::kBool}).assign(2), InvalidArgument);
  EXPECT_EQ(variable.assign(-3.0).read().item<int>(), -3);
}

TEST(PlainVariable, OfBoolIsOnlyAssigned) {
  const Variable variable({.dtype = DType::kBool});
  EXPECT_THAT([&] { variable.assign_add(true); }, ThrowsMessage<InvalidArgument>(HasSubstr("use assign")));
  EXPECT_THROW(variable.assign_sub(true), InvalidArgument);
  EXPECT_FALSE(variable.read().item<bool>());
}

template <class T>
class IntegerVariable : public ::testing::Test {};
using Integers = ::testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                                  std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(IntegerVariable, Integers);

TYPED_TEST(IntegerVariable, WrapsAtBothEnds) {
  using Limits = std::numeric_limits<TypeParam>;
  const Variable variable = variable_of(Tensor::scalar(Limits::max()));
  variable.assign_add(TypeParam{1});
  EXPECT_EQ(variable.read().item<TypeParam>(), Limits::min());
  variable.assign_sub(TypeParam{1});
  EXPECT_EQ(variable.read().item<TypeParam>(), Limits::max());
}

TEST(PlainVariable, OfSixteenBitFloatsAddsInFloat32AndRoundsOnce) {
  const Variable half = variable_of(Tensor::scalar(float16(2048)));
  half.assign_add(Tensor::scalar(float16(1)));
  EXPECT_EQ(half.read().item<float>(), 2048) << "the tie goes to the even number";
  half.assign_add(Tensor::scalar(float16(3)));
  EXPECT_EQ(half.read().item<float>(), 2052);
  const Variable brain = variable_of(Tensor::scalar(bfloat16(1)));
  brain.assign_sub(Tensor::scalar(bfloat16(0.5f)));
  EXPECT_EQ(brain.read().item<float>(), 0.5f);
}

TEST(PlainVariable, RefusesAnotherShapeOrDtype) {
  const Variable variable = variable_of(Tensor::from({1.0f, 2.0f}));
  EXPECT_THAT(
      [&] {
        variable.assign(Tensor::from({1.0f, 2.0f, 3.0f}));
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr("assign of float32[3]"), HasSubstr("'w'"), HasSubstr("float32[2]"))));
  EXPECT_THROW(variable.assign_add(Tensor::from({1.0, 2.0})), InvalidArgument);
  EXPECT_THROW(variable.assign_sub(Tensor::from({1.0f})), InvalidArgument);
  EXPECT_THROW(variable.assign(1.0f), InvalidArgument) << "a number is for variables of shape []";
  EXPECT_THAT(variable.read().span<float>(), ElementsAre(1, 2));
}

TEST(PlainVariable, HasOneComponentThatIsWrittenInPlace) {
  const Variable variable = variable_of(Tensor::from({1.0f, 2.0f}));
  variable.replica_component().fill(4);
  EXPECT_THAT(variable.read().span<float>(), Each(4));
}

TEST(PlainVariable, ReturnsItselfFromAssignments) {
  const Variable variable = variable_of(Tensor::scalar(1.0f));
  EXPECT_EQ(variable.assign(5.0f).assign_add(2.0f).assign_sub(1.0f), variable);
  EXPECT_EQ(variable.read().item<float>(), 6);
}

TEST(VariableSynchronizations, HaveNames) {
  EXPECT_EQ(to_string(VariableSynchronization::kAuto), "auto");
  EXPECT_EQ(to_string(VariableSynchronization::kNone), "none");
  EXPECT_EQ(to_string(VariableSynchronization::kOnWrite), "on_write");
  EXPECT_EQ(to_string(VariableSynchronization::kOnRead), "on_read");
}

TEST(VariableAggregations, HaveNames) {
  EXPECT_EQ(to_string(VariableAggregation::kNone), "none");
  EXPECT_EQ(to_string(VariableAggregation::kSum), "sum");
  EXPECT_EQ(to_string(VariableAggregation::kMean), "mean");
  EXPECT_EQ(to_string(VariableAggregation::kOnlyFirstReplica), "only_first_replica");
}

}  // namespace
}  // namespace cohort
