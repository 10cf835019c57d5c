#include <cohort/value/per_replica.h>

#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include <cohort/device/tensor.h>

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

}  // namespace
}  // namespace cohort
