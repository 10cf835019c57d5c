#include "server/step_clock.h"

#include <gtest/gtest.h>

#include <memory>

namespace cohort::server {
namespace {

class StepClocks : public testing::Test {
 protected:
  std::shared_ptr<bool> end_step(const std::string& task, std::int64_t staleness,
                                 std::uint64_t incarnation = 1) {
    auto went_on = std::make_shared<bool>(false);
    clock_.end_step(task, incarnation, staleness, [went_on] { *went_on = true; });
    return went_on;
  }
  StepClock clock_{{"a", "b"}};
};

TEST_F(StepClocks, WithoutStalenessAllMakeTheirStepsTogether) {
  const auto a = end_step("a", 0);
  EXPECT_FALSE(*a);
  const auto b = end_step("b", 0);
  EXPECT_TRUE(*a);
  EXPECT_TRUE(*b);
}

TEST_F(StepClocks, ATaskMayBeSoManyStepsAhead) {
  EXPECT_TRUE(*end_step("a", 2));
  EXPECT_TRUE(*end_step("a", 2));
  const auto third = end_step("a", 2);
  EXPECT_FALSE(*third);
  EXPECT_TRUE(*end_step("b", 2)) << "the slowest never waits";
  EXPECT_TRUE(*third);
}

TEST_F(StepClocks, NobodyWaitsForATaskThatHasLeft) {
  const auto a = end_step("a", 0);
  clock_.leave("b", 1);
  EXPECT_TRUE(*a);
  EXPECT_TRUE(*end_step("a", 0));
}

TEST_F(StepClocks, ATaskThatComesBackBeginsWhereTheSlowestIs) {
  static_cast<void>(end_step("b", 9));
  clock_.leave("b", 1);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(*end_step("a", 0));
  EXPECT_FALSE(*end_step("b", 0, 2)) << "it has made the sixth step, and a the fifth";
  EXPECT_TRUE(*end_step("a", 0));
}

}  // namespace
}  // namespace cohort::server
