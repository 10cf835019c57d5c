#include <array>
#include <atomic>
#include <cstring>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective.h"
#include "exact_values.h"
#include "harness.h"
#include "team.h"

namespace cohort::bench {
namespace {

constexpr std::size_t kCopied = 100;

/// A copy from input to output, which with one member is what a reduction is.
const Collective kCopy{.layout = [](const Role& role) {
  return Layout{.input = role.elements,
                .output = role.elements,
                .result = {{.source = ResultPart::kReduced, .first = 0, .elements = role.elements}}};
}};

struct Copier {
  std::array<float, kCopied> input{};
  std::array<float, kCopied> output{};
  int calls = 0;

  Contender contender(bool works) {
    return {.input = std::as_writable_bytes(std::span(input)),
            .output = std::as_writable_bytes(std::span(output)),
            .call = [this, works] {
              ++calls;
              if (works) output = input;
            }};
  }
};

/// A place with memory and a time of its own, where each call takes 5 us and copies input to output.
struct OtherPlace final : OffHost {
  explicit OtherPlace(Copier& host) : host_(host) {}

  Contender contender() {
    return {.input = std::as_writable_bytes(std::span(host_.input)),
            .output = std::as_writable_bytes(std::span(host_.output)),
            .call = [this] { there.output = there.input; },
            .off_host = this,
            .limit = CallLimit{.call = "a call", .seconds = 1}};
  }

  void bring() const override { there.input = host_.input; }
  [[nodiscard]] std::uint64_t time(const std::function<void()>& call,
                                   const std::optional<CallLimit>& limit) const override {
    call();
    ++timed;
    limited += limit && limit->call == "a call" ? 1 : 0;
    return 5000;
  }
  void fetch() const override { host_.output = there.output; }

  mutable Copier there;
  mutable int timed = 0;
  mutable int limited = 0;  ///< of them, with the contender's limit

 private:
  Copier& host_;
};

std::vector<Measurement> measure_alone(std::span<const Contender> contenders, const HarnessOptions& options) {
  std::vector<Measurement> measurements;
  run_thread_team(1, [&](int /*member*/, const Team& team) {
    const TickClock clock;
    const ExactValues values(DType::kFloat32, ReduceOp::kSum, 1);
    measurements = measure(kCopy, {.elements = kCopied}, values, contenders, options, team, clock);
  });
  return measurements;
}

TEST(Harness, TimesEveryCallOfEveryLoop) {
  Copier copier;
  const std::array contenders{copier.contender(true)};
  const auto measurements = measure_alone(contenders, {.loops = 3, .iterations = 4});
  ASSERT_THAT(measurements, testing::SizeIs(1));
  EXPECT_EQ(measurements[0].iterations, 4);
  EXPECT_THAT(measurements[0].call_us, testing::SizeIs(3));
  EXPECT_THAT(measurements[0].iteration_us, testing::SizeIs(3));
  EXPECT_THAT(measurements[0].single_us, testing::SizeIs(12));
  EXPECT_EQ(measurements[0].wrong, 0u);
  for (std::size_t loop = 0; loop < 3; ++loop) {
    EXPECT_GE(measurements[0].iteration_us[loop], measurements[0].call_us[loop]);
  }
}

TEST(Harness, FindsACallThatStopsWorking) {
  Copier works;
  Copier does_not;
  const std::array contenders{works.contender(true), does_not.contender(false)};
  const auto measurements = measure_alone(contenders, {.loops = 2, .iterations = 3});
  EXPECT_EQ(measurements[0].wrong, 0u);
  // The warm-up's first call and two loops of 50, then 2 loops of 3: every element of each.
  EXPECT_EQ(measurements[1].wrong, (1 + 100 + 6) * kCopied);
}

TEST(Harness, SeesAResultOfTheIterationBefore) {
  Copier copier;
  std::array<float, kCopied> last{};
  Contender late = copier.contender(true);
  late.call = [&] {
    copier.output = last;
    last = copier.input;
  };
  const std::array contenders{late};
  const auto measurements = measure_alone(contenders, {.loops = 1, .iterations = 2});
  EXPECT_GT(measurements[0].wrong, 100 * kCopied / 2);
}

TEST(Harness, TakesInputResultAndTimeOfCallsElsewhereFromThere) {
  Copier host;
  OtherPlace place(host);
  Copier here;
  const std::array contenders{place.contender(), here.contender(true)};
  const auto measurements = measure_alone(contenders, {.loops = 2, .iterations = 3});
  EXPECT_EQ(measurements[0].wrong, 0u);
  EXPECT_EQ(measurements[1].wrong, 0u);
  EXPECT_THAT(measurements[0].call_us, testing::Each(testing::DoubleEq(5)));
  EXPECT_THAT(measurements[0].single_us,
              testing::AllOf(testing::SizeIs(6), testing::Each(testing::DoubleEq(5))));
  EXPECT_EQ(place.timed, 1 + 100 + 6);
  EXPECT_EQ(place.limited, place.timed);
  EXPECT_EQ(here.calls, place.timed);
}

TEST(Harness, BringsKeptInputsOnce) {
  Copier host;
  OtherPlace place(host);
  const std::array contenders{place.contender()};
  EXPECT_EQ(measure_alone(contenders, {.inputs = Inputs::kKept, .loops = 1, .iterations = 2})[0].wrong, 0u);
  EXPECT_THAT(place.there.input, testing::Each(0.0f));
}

TEST(Harness, LeavesKeptInputsAlone) {
  Copier copier;
  const std::array contenders{copier.contender(true)};
  const auto measurements = measure_alone(contenders, {.inputs = Inputs::kKept, .loops = 1, .iterations = 2});
  EXPECT_EQ(measurements[0].wrong, 0u);
  EXPECT_THAT(copier.input, testing::Each(0.0f));
}

TEST(Harness, SaysThatNothingWasChecked) {
  Copier copier;
  const std::array contenders{copier.contender(false)};
  EXPECT_EQ(measure_alone(contenders, {.check = false, .loops = 1, .iterations = 1})[0].wrong, std::nullopt);
}

using testing::ElementsAre;

TEST(UnevenCounts, GrowWithTheRankAndAddUp) {
  EXPECT_THAT(uneven_counts({.members = 1, .elements = 5}), ElementsAre(5));
  EXPECT_THAT(uneven_counts({.members = 3, .elements = 60}), ElementsAre(10, 20, 30));
  EXPECT_THAT(uneven_counts({.members = 3, .elements = 64}), ElementsAre(10, 20, 34));
}

TEST(UnevenCounts, OfFewElementsLeaveSomeMembersNone) {
  EXPECT_THAT(uneven_counts({.members = 3, .elements = 1}), ElementsAre(0, 0, 1));
}

TEST(BlockOfEach, IsEveryMembersInputByRank) {
  const std::vector<ResultPart> parts = block_of_each({.member = 1, .members = 3, .elements = 12});
  ASSERT_EQ(parts.size(), 3u);
  for (int member = 0; member < 3; ++member) {
    const ResultPart& part = parts[static_cast<std::size_t>(member)];
    EXPECT_EQ(part.source, member);
    EXPECT_EQ(part.first, 0u);
    EXPECT_EQ(part.elements, 4u);
  }
}

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
