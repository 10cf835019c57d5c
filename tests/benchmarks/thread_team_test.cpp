#include "thread_team.h"

#include <array>
#include <atomic>

#include <gtest/gtest.h>

#include "harness.h"

namespace cohort::bench {
namespace {

TEST(ThreadTeam, CombinesWhatItsMembersHave) {
  std::atomic<int> members_seen = 0;
  run_thread_team(3, [&](int member, const Team& team) {
    for (int round = 0; round < 100; ++round) {
      EXPECT_EQ(team.from_first(member + round), round);
      std::array<double, 2> values{1.0 * member, 1.0 * round - member};
      team.take_maximum(values);
      EXPECT_EQ(values[0], 2);
      EXPECT_EQ(values[1], round);
      EXPECT_EQ(team.sum(static_cast<std::uint64_t>(member)), 3u);
    }
    ++members_seen;
  });
  EXPECT_EQ(members_seen, 3);
}

TEST(BarrierCheck, AcceptsABarrier) {
  run_thread_team(2, [](int /*member*/, const Team& team) {
    EXPECT_EQ(count_early_leavers([&] { team.barrier(); }, team), 0u);
  });
}

TEST(BarrierCheck, SeesOneThatWaitsForNobody) {
  run_thread_team(2, [](int member, const Team& team) {
    // Member 1 does not come before member 0 is through with all of its calls.
    if (member == 1) team.barrier();
    int calls = 0;
    const auto early = count_early_leavers(
        [&] {
          if (member == 0 && ++calls == 200) team.barrier();
        },
        team);
    EXPECT_GT(early.value_or(0), 0u);
  });
}

}  // namespace
}  // namespace cohort::bench
