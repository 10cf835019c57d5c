// Whom a member blames that has waited for too long, by what the others answer. All of them are on one
// thread, and on a clock that the test sets.
#include "collective/network/failure_detector.h"

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/base/monotonic_clock.h>

#include "thread_transport.h"

namespace cohort::network {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::chrono::duration<double> kShort{0.1};

class Blame : public ::testing::Test {
 protected:
  struct Member {
    Member(const std::shared_ptr<testing::Switchboard>& board, int rank, const std::vector<MemberInfo>& infos)
        : transport(board, rank), topology({0, 1, 2}, rank), detector(transport, topology, infos) {}
    testing::ThreadTransport transport;
    Topology topology;
    FailureDetector detector;
  };

  /// The deadline of member 0, which has passed, was `allowed`.
  explicit Blame(std::chrono::duration<double> allowed = 2s) : allowed_(allowed) {
    for (int rank = 0; rank < 3; ++rank) members_.emplace_back(board_, rank, infos_);
    EXPECT_EQ(look(), std::nullopt) << "it asks";
  }

  /// A look of a member; the deadlines of the others were short.
  std::optional<Error> look(std::size_t rank = 0) {
    static_cast<void>(members_[rank].detector.poll_failure(true, 0));
    return members_[rank].detector.conclude_missing(call_, 0, rank == 0 ? allowed_ : kShort, false);
  }
  /// What it finds in so much time.
  std::optional<Error> found_within(std::chrono::milliseconds time, std::size_t rank = 0) {
    constexpr auto kStep = 10ms;
    for (auto passed = 0ms; passed < time; passed += kStep) {
      clock_.set(clock_.now() + kStep);
      if (std::optional<Error> error = look(rank)) return error;
    }
    return std::nullopt;
  }
  void answer(std::size_t rank, bool in_collective) {
    static_cast<void>(members_[rank].detector.poll_failure(in_collective, FailureDetector::kNoCall));
  }

  std::chrono::duration<double> allowed_;
  VirtualClock clock_;
  CollectiveCall call_{.kind = CollectiveKind::kBarrier};
  std::vector<MemberInfo> infos_{{0, "a"}, {1, "b"}, {2, "c"}};
  std::shared_ptr<testing::Switchboard> board_ = std::make_shared<testing::Switchboard>(3);
  std::deque<Member> members_;
};

TEST_F(Blame, IsForThoseThatDoNotAnswerWithinHalfASecond) {
  answer(1, true);
  EXPECT_EQ(found_within(490ms), std::nullopt);
  const std::optional<Error> error = found_within(250ms);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->origin().member, 2);
  EXPECT_EQ(error->origin().host, "c");
  EXPECT_THAT(error->what(), HasSubstr("missing: member 2 (worker 2, host c). They are stopped"));
}

TEST_F(Blame, IsForThoseThatAreSilentBeforeThoseElsewhere) {
  answer(1, false);
  const std::optional<Error> error = found_within(750ms);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->origin().member, 2);
  EXPECT_THAT(error->what(), AllOf(HasSubstr("missing: member 2 (worker 2, host c). They are stopped"),
                                   HasSubstr("but answer: member 1 (worker 1, host b).")));
}

TEST_F(Blame, IsForThoseElsewhereAfterOneSecondMore) {
  answer(1, true);
  answer(2, false);
  EXPECT_EQ(found_within(1490ms), std::nullopt);
  const std::optional<Error> error = found_within(500ms);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("missing: member 2 (worker 2, host c). They answer, but"));
}

TEST_F(Blame, IsNotForOneThatComesMeanwhile) {
  answer(1, false);
  answer(2, false);
  EXPECT_EQ(found_within(900ms), std::nullopt);
  answer(1, true);
  const std::optional<Error> error = found_within(1000ms);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("missing: member 2 (worker 2, host c). They answer, but"));
}

TEST_F(Blame, IsForTheNetworkWhereAllAreHere) {
  answer(1, true);
  answer(2, true);
  const std::optional<Error> error = found_within(2000ms);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->origin().member, -1);
  EXPECT_THAT(error->what(), HasSubstr("network"));
}

TEST_F(Blame, IsLeftToALowerRankForAsLongAsThatOneNeeds) {
  EXPECT_EQ(found_within(980ms, 2), std::nullopt) << "its own deadline is short, that of member 0 is not";
  EXPECT_TRUE(found_within(50ms, 2));
}

class BlameAfterAShortDeadline : public Blame {
 protected:
  BlameAfterAShortDeadline() : Blame(kShort) {}
};

TEST_F(BlameAfterAShortDeadline, IsForThoseThatDoNotAnswerWithinAFifthOfASecond) {
  answer(1, true);
  EXPECT_EQ(found_within(190ms), std::nullopt);
  const std::optional<Error> error = found_within(250ms);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("missing: member 2 (worker 2, host c). They are stopped"));
}

TEST_F(BlameAfterAShortDeadline, IsForThoseElsewhereAfterTwoFifthsMore) {
  answer(1, true);
  answer(2, false);
  EXPECT_EQ(found_within(590ms), std::nullopt);
  const std::optional<Error> error = found_within(500ms);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("missing: member 2 (worker 2, host c). They answer, but"));
}

TEST_F(BlameAfterAShortDeadline, IsLeftToALowerRankForTwoFifthsOfASecond) {
  EXPECT_EQ(found_within(380ms, 2), std::nullopt);
  EXPECT_TRUE(found_within(50ms, 2));
}

}  // namespace
}  // namespace cohort::network
