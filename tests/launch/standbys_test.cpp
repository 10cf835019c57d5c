// Which servers' standbys may take over, as hosts are lost and servers go on alone.
#include "job.h"

#include <gmock/gmock.h>

namespace cohort::supervise {
namespace {

using testing::ElementsAre;
using State = Standbys::State;

TEST(Standbys, RunOnTheNextHostButNotOfServersOnTheFirst) {
  const auto tasks = tasks_of_roles("chief=1,worker=2,ps=4");
  EXPECT_THAT(spread_standbys(tasks, spread(tasks, 3), 3),
              ElementsAre(kNoHost, kNoHost, kNoHost, kNoHost, 2, 0, kNoHost));
  EXPECT_THAT(spread_standbys(tasks, spread(tasks, 2), 2),
              ElementsAre(kNoHost, kNoHost, kNoHost, 0, kNoHost, 0, kNoHost));
  EXPECT_THAT(spread_standbys(tasks, spread(tasks, 1), 1), testing::Each(kNoHost));
}

/// The servers 0 on the first host and 1 on host 1, whose standby is on host 2.
class TwoServers : public testing::Test {
 protected:
  Standbys standbys_{{0, 1}, {kNoHost, 2}};
};

TEST_F(TwoServers, TakeOverOnceTheCopyIsComplete) {
  EXPECT_EQ(standbys_.state_of(0), State::kNone);
  EXPECT_EQ(standbys_.state_of(1), State::kIncomplete);
  standbys_.copied(1, 1);
  EXPECT_EQ(standbys_.state_of(1), State::kComplete);
  EXPECT_EQ(standbys_.standby_host_of(1), 2);
  standbys_.take_over(1);
  EXPECT_EQ(standbys_.host_of(1), 2);
  EXPECT_EQ(standbys_.state_of(1), State::kNone);
  EXPECT_EQ(standbys_.standby_host_of(1), kNoHost);
}

TEST_F(TwoServers, DoNotTakeOverFromOneThatMayCommitAlone) {
  standbys_.copied(1, 1);
  EXPECT_TRUE(standbys_.may_go_alone(1, 1));
  EXPECT_EQ(standbys_.state_of(1), State::kIncomplete);
  standbys_.copied(1, 1);
  EXPECT_EQ(standbys_.state_of(1), State::kComplete) << "the standby has come back";
}

TEST_F(TwoServers, MayNotCommitWhereAnotherHasTakenOver) {
  standbys_.copied(1, 1);
  standbys_.take_over(1);
  EXPECT_FALSE(standbys_.may_go_alone(1, 1));
  EXPECT_TRUE(standbys_.may_go_alone(1, 2)) << "there is no other";
  standbys_.copied(1, 1);
  EXPECT_EQ(standbys_.state_of(1), State::kNone) << "what the former server says counts no more";
}

TEST_F(TwoServers, AreLostWithTheHostOfTheirStandbyAndTheirOwn) {
  standbys_.copied(1, 1);
  standbys_.lose_host(2);
  EXPECT_EQ(standbys_.state_of(1), State::kLost);
  EXPECT_TRUE(standbys_.may_go_alone(1, 1));
  standbys_.copied(1, 1);
  EXPECT_EQ(standbys_.state_of(1), State::kLost) << "said before it was lost";
}

TEST_F(TwoServers, HaveNoOtherStandbyAfterATakeOver) {
  standbys_.copied(1, 1);
  standbys_.lose_host(1);
  EXPECT_EQ(standbys_.state_of(1), State::kComplete) << "its own host";
  standbys_.take_over(1);
  standbys_.lose_host(2);
  EXPECT_EQ(standbys_.host_of(1), 2);
  EXPECT_EQ(standbys_.state_of(1), State::kNone);
}

}  // namespace
}  // namespace cohort::supervise
