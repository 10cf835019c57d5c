// What becomes of a job when its tasks end.
#include "job.h"

#include <csignal>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort::supervise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Ending kGood{};
constexpr Ending kKilled{.status = 0, .signal = SIGKILL};

Ending failed(int status) { return {.status = status, .signal = 0}; }

TEST(SupervisedJob, IsOverWhenAllButServersHaveEnded) {
  Job job(tasks_of_roles("ps=1,worker=1,chief=1,evaluator=1"));
  EXPECT_EQ(job.chief(), (ClusterTask{"chief", 0}));
  job.end({"chief", 0}, kGood);
  EXPECT_FALSE(job.is_over());
  EXPECT_THAT(job.stragglers(), ElementsAre(ClusterTask{"worker", 0}, ClusterTask{"evaluator", 0}));
  job.end({"worker", 0}, kGood);
  EXPECT_FALSE(job.is_over());
  job.end({"evaluator", 0}, kGood);
  EXPECT_TRUE(job.is_over());
  EXPECT_FALSE(job.has_ended({"ps", 0}));
  job.end({"ps", 0}, failed(9));
  EXPECT_EQ(job.exit_status(), 0) << "nobody needed the server any more";
}

TEST(SupervisedJob, EndsAsItsChiefDoes) {
  Job job(tasks_of_roles("worker=2,ps=1"));
  EXPECT_EQ(job.chief(), (ClusterTask{"worker", 0}));
  job.end({"worker", 1}, failed(4));
  EXPECT_FALSE(job.has_failed());
  EXPECT_EQ(job.exit_status(), 4);
  job.end({"worker", 0}, failed(3));
  EXPECT_TRUE(job.has_failed());
  EXPECT_EQ(job.exit_status(), 3);
}

TEST(SupervisedJob, SurvivesTheLossOfWorkersButNotOfTheChief) {
  Job job(tasks_of_roles("chief=1,worker=1,ps=1"));
  job.end({"worker", 0}, kKilled);
  job.end({"ps", 0}, kKilled);
  EXPECT_EQ(job.exit_status(), 0);
  job.end({"chief", 0}, kKilled);
  EXPECT_TRUE(job.has_failed());
  EXPECT_EQ(job.exit_status(), 128 + SIGKILL);
}

TEST(SupervisedJob, IsSpreadOverHostsInTurn) {
  EXPECT_THAT(spread(tasks_of_roles("chief=1,worker=3,ps=2"), 2), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(spread(tasks_of_roles("worker=2,chief=1,ps=1"), 2), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(spread(tasks_of_roles("worker=2"), 3), ElementsAre(0, 1));
}

TEST(SupervisedJob, SaysHowATaskEnded) {
  EXPECT_EQ(describe(failed(3)), "ended with status 3");
  EXPECT_EQ(describe(kKilled), "was ended by SIGKILL");
  EXPECT_EQ(describe({.status = 0, .signal = 40}), "was ended by signal 40");
}

TEST(SupervisedJob, NeedsSomebodyToWaitFor) {
  EXPECT_THAT([] { const Job job(tasks_of_roles("ps=1,evaluator=1")); },
              ThrowsMessage<InvalidArgument>(HasSubstr("neither a chief nor a worker")));
  EXPECT_THAT([] { static_cast<void>(tasks_of_roles("worker=2000000000,ps=2000000000")); },
              ThrowsMessage<InvalidArgument>(HasSubstr("4000000000 tasks")));
}

}  // namespace
}  // namespace cohort::supervise
