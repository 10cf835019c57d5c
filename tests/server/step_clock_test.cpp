#include "server/serving/task_progress.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace cohort::server {
namespace {

class StepClocks : public testing::Test {
 protected:
  /// The next step of a process.
  std::shared_ptr<bool> end_step(const std::string& task, std::int64_t staleness,
                                 std::uint64_t incarnation = 1) {
    ++processes_[{task, incarnation}].count;
    return end_step_again(task, staleness, incarnation);
  }

  /// The message of its last step, once more.
  std::shared_ptr<bool> end_step_again(const std::string& task, std::int64_t staleness,
                                       std::uint64_t incarnation = 1) {
    auto went_on = std::make_shared<bool>(false);
    StepEnd& step = processes_[{task, incarnation}];
    step.staleness = staleness;
    clock_.end_step(task, incarnation, step, [went_on, &step](std::int64_t origin) {
      *went_on = true;
      step.origin = origin;
    });
    return went_on;
  }

  void start_server_again() { clock_ = StepClock({"a", "b", "c"}, true); }

  StepClock clock_{{"a", "b"}};

 private:
  std::map<std::pair<std::string, std::uint64_t>, StepEnd> processes_;
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

TEST_F(StepClocks, AStepThatIsToldTwiceCountsOnce) {
  const auto first = end_step("a", 1);
  EXPECT_TRUE(*first);
  EXPECT_TRUE(*end_step_again("a", 1));
  const auto second = end_step("a", 1);
  EXPECT_FALSE(*second) << "it is two steps ahead";
  const auto again = end_step_again("a", 1);
  EXPECT_TRUE(*end_step("b", 1));
  EXPECT_TRUE(*again) << "one step ahead, though four messages came";
}

TEST_F(StepClocks, AServerThatIsStartedAgainLearnsWhereAllAre) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(*end_step("a", 1));
    EXPECT_TRUE(*end_step("b", 1));
  }
  EXPECT_TRUE(*end_step("a", 1));
  static_cast<void>(end_step("a", 1));
  start_server_again();
  EXPECT_TRUE(*end_step_again("a", 1)) << "nobody else has come yet";
  EXPECT_TRUE(*end_step("b", 1));
  const auto ahead = end_step("a", 1);
  EXPECT_FALSE(*ahead) << "the eighth step of a, and b has made six";
  EXPECT_TRUE(*end_step("b", 1));
  EXPECT_TRUE(*ahead);
}

TEST_F(StepClocks, AProcessAndAServerThatAreStartedAgainHoldNobodyUp) {
  for (int i = 0; i < 50; ++i) {
    static_cast<void>(end_step("a", 1));
    static_cast<void>(end_step("b", 1));
  }
  start_server_again();
  EXPECT_TRUE(*end_step("b", 1, 2)) << "a new process of b comes first";
  EXPECT_TRUE(*end_step("c", 1, 2)) << "and one of another task";
  EXPECT_TRUE(*end_step("a", 1));
  const auto ahead = end_step("a", 1);
  EXPECT_TRUE(*ahead) << "b and c begin where a was";
  EXPECT_FALSE(*end_step("a", 1));
}

}  // namespace
}  // namespace cohort::server
