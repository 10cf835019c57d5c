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

class Blame : public ::testing::Test {
 protected:
  struct Member {
    Member(const std::shared_ptr<testing::Switchboard>& board, int rank, const std::vector<MemberInfo>& infos)
        : transport(board, rank), topology({0, 1, 2}, rank), detector(transport, topology, infos) {}
    testing::ThreadTransport transport;
    Topology topology;
    FailureDetector detector;
  };

  Blame() {
    for (int rank = 0; rank < 3; ++rank) members_.emplace_back(board_, rank, infos_);
    EXPECT_EQ(look(), std::nullopt) << "it asks";
  }

  /// A look of member 0, whose deadline has passed.
  std::optional<Error> look() {
    static_cast<void>(members_[0].detector.poll_failure(true, 0));
    return members_[0].detector.conclude_missing(call_, 0, 2s, false);
  }
  /// What member 0 finds in so much time.
  std::optional<Error> found_within(std::chrono::milliseconds time) {
    constexpr auto kStep = 10ms;
    for (auto passed = 0ms; passed < time; passed += kStep) {
      clock_.set(clock_.now() + kStep);
      if (std::optional<Error> error = look()) return error;
    }
    return std::nullopt;
  }
  void answer(std::size_t rank, bool in_collective) {
    static_cast<void>(members_[rank].detector.poll_failure(in_collective, FailureDetector::kNoCall));
  }

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

}  // namespace
}  // namespace cohort::network
