// Who is named as the one that the others wait for, and why; and what is read of records while members go on.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "collective/record/call_record.h"
#include "observation/arrival_reader.h"
#include "observation/link_judge.h"
#include "observation/slowness_judge.h"

namespace cohort {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

/// Calls of three workers on a node, 10 ms apart.
class Calls {
 public:
  explicit Calls(ArrivalSource source = {.communicator = "1"}) : source_(std::move(source)) {}

  void add(int last, std::int64_t lateness, std::int64_t input = 0) {
    time_ += 10 * kMillisecond;
    CallArrivals call{
        .number = number_++, .last_at = time_, .second_at = time_ - lateness, .last = last, .members = 3};
    call.away = {.all = 2 * kMillisecond + lateness, .input = input};
    call.others_away = {.all = 2 * kMillisecond};
    judge.add(source_, call);
  }
  void add_many(int calls, int last, std::int64_t lateness, std::int64_t input = 0) {
    for (int i = 0; i < calls; ++i) add(last, lateness, input);
  }

  StragglerJudge judge;

 private:
  ArrivalSource source_;
  std::int64_t time_ = 0;
  std::uint64_t number_ = 0;
};

TEST(StragglerJudge, NamesNobodyWhileAllComeTogether) {
  Calls calls;
  for (int i = 0; i < 1000; ++i) calls.add(i % 3, kMillisecond / 20);
  EXPECT_FALSE(calls.judge.present());
  EXPECT_FALSE(calls.judge.of_all_calls());
}

TEST(StragglerJudge, NamesNobodyWhereEachIsLateAtTimes) {
  Calls calls;
  for (int i = 0; i < 1000; ++i) calls.add(i % 3, 5 * kMillisecond);
  EXPECT_FALSE(calls.judge.present());
  EXPECT_FALSE(calls.judge.of_all_calls());
}

TEST(StragglerJudge, NamesNobodyForAFewLongPauses) {
  Calls calls;
  for (int i = 0; i < 300; ++i) calls.add(2, i % 100 == 0 ? 500 * kMillisecond : 0);
  EXPECT_FALSE(calls.judge.present());
  EXPECT_FALSE(calls.judge.of_all_calls());
}

TEST(StragglerJudge, NamesTheSlowOneWithinAHundredCalls) {
  Calls calls;
  calls.add_many(100, 2, 5 * kMillisecond);
  ASSERT_TRUE(calls.judge.present());
  EXPECT_EQ(calls.judge.present()->worker, 2);
  EXPECT_EQ(to_string(*calls.judge.present()),
            "was last in 100 % of calls, by 5.0 ms on average: computing, not input or communication");
}

TEST(StragglerJudge, NamesOneThatIsSlowAtRandom) {
  Calls calls;
  for (int i = 0; i < 100; ++i)
    calls.add(i % 3 == 0 ? 1 : i % 2, i % 3 == 0 ? 5 * kMillisecond : kMillisecond / 20);
  ASSERT_TRUE(calls.judge.present());
  EXPECT_EQ(calls.judge.present()->worker, 1);
}

TEST(StragglerJudge, NamesOneThatIsSlowAtRandomWhereTheMachineDelaysOthersForAMoment) {
  Calls calls;
  for (int i = 0; i < 100; ++i)
    calls.add(i % 3 == 0 ? 1 : i % 2, i % 3 == 0 ? 20 * kMillisecond : kMillisecond / 2);
  ASSERT_TRUE(calls.judge.present());
  EXPECT_EQ(calls.judge.present()->worker, 1);
}

TEST(StragglerJudge, NamesNobodyForOneLongPauseAmongMoments) {
  Calls calls;
  for (int i = 0; i < 300; ++i) calls.add(i % 3, i == 151 ? 900 * kMillisecond : kMillisecond / 2);
  EXPECT_FALSE(calls.judge.present());
  EXPECT_FALSE(calls.judge.of_all_calls());
}

TEST(StragglerJudge, TellsInputFromComputing) {
  Calls calls;
  calls.add_many(100, 0, 5 * kMillisecond, 5 * kMillisecond);
  ASSERT_TRUE(calls.judge.of_all_calls());
  EXPECT_EQ(calls.judge.of_all_calls()->cause, LateFrom::kInput);
}

TEST(StragglerJudge, TellsAWorkerWithoutACoreFromOneThatComputes) {
  StragglerJudge judge;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const auto time = static_cast<std::int64_t>(number + 1) * 10 * kMillisecond;
    // In the first half, worker 0 computes for longer, too.
    const int last = number < 100 && number % 2 == 0 ? 0 : 1;
    judge.add({.communicator = "1"},
              {.number = number,
               .last_at = time,
               .second_at = time - 5 * kMillisecond,
               .last = last,
               .members = 2,
               .away = {.all = 7 * kMillisecond, .core = last == 1 ? 6 * kMillisecond : 0},
               .others_away = {.all = 2 * kMillisecond}});
    if (number == 99) {
      ASSERT_TRUE(judge.present());
      EXPECT_EQ(judge.present()->worker, 0);
      EXPECT_EQ(judge.present()->cause, LateFrom::kComputing);
    }
  }
  ASSERT_TRUE(judge.present());
  EXPECT_EQ(judge.present()->worker, 1);
  EXPECT_EQ(judge.present()->cause, LateFrom::kWaitingForCore);
}

TEST(StragglerJudge, ForgetsOneThatHasBecomeFast) {
  Calls calls;
  calls.add_many(100, 2, 5 * kMillisecond);
  for (int i = 0; i < 100; ++i) calls.add(i % 3, kMillisecond / 20);
  EXPECT_FALSE(calls.judge.present());
}

TEST(StragglerJudge, WhereCoresAreSharedComparesWithWhatOthersCompute) {
  Calls calls({.communicator = "1", .shares_cores = true});
  calls.add_many(100, 2, 2 * kMillisecond);
  EXPECT_FALSE(calls.judge.present());
  calls.add_many(100, 2, 8 * kMillisecond);
  EXPECT_TRUE(calls.judge.present());
}

TEST(StragglerJudge, WaitsForAllNodesAndMissesWhatOneHasMissed) {
  StragglerJudge judge;
  const auto arrivals = [](int node, std::uint64_t number) {
    return CallArrivals{
        .number = number,
        .last_at = static_cast<std::int64_t>(number) * 10 * kMillisecond + node * 4 * kMillisecond,
        .last = node,
        .members = 1,
        .away = {.all = kMillisecond + node * 4 * kMillisecond}};
  };
  for (std::uint64_t number = 0; number < 200; ++number)
    judge.add({.communicator = "1", .node = 0, .nodes = 2}, arrivals(0, number));
  EXPECT_FALSE(judge.of_all_calls());
  for (std::uint64_t number = 0; number < 200; number += 2)
    judge.add({.communicator = "1", .node = 1, .nodes = 2}, arrivals(1, number));
  ASSERT_TRUE(judge.of_all_calls());
  EXPECT_EQ(judge.of_all_calls()->worker, 1);
  EXPECT_NEAR(judge.of_all_calls()->mean_lateness, 0.004, 1e-6);
}

TEST(CallArrivals, OfTwoNodesAreThoseOfTheLastOfAll) {
  const CallArrivals first{
      .last_at = 50, .second_at = 20, .last = 1, .members = 2, .away = {40, 4}, .others_away = {30, 3}};
  const CallArrivals second{.last_at = 60, .last = 2, .members = 1, .away = {70, 7}};
  for (const CallArrivals& merged : {first.merged_with(second), second.merged_with(first)}) {
    EXPECT_EQ(merged.last, 2);
    EXPECT_EQ(merged.lateness(), 10);
    EXPECT_EQ(merged.members, 3);
    EXPECT_EQ(merged.away.all, 70);
    EXPECT_EQ(merged.others_away.all, 30);
  }
}

TEST(CallArrivals, DoNotBlameAMemberWhoseCallBeforeEndedLate) {
  CallArrivals call{
      .last_at = 60, .second_at = 20, .last = 1, .members = 2, .away = {30, 0}, .others_away = {30, 0}};
  EXPECT_EQ(call.lateness(), 0);
  call.away.all = 45;
  EXPECT_EQ(call.lateness(), 15);
  call.away = {};
  EXPECT_EQ(call.lateness(), 0);
}

TEST(LinkJudge, NamesTheNodeWhoseQueueIsFullerThanAllOthers) {
  LinkJudge judge;
  const QueueLooks full{.looks = 10, .full = 10, .bytes = 10 * 4 * kFullQueue};
  const QueueLooks half{.looks = 10, .full = 5, .bytes = 10 * kFullQueue};
  for (int i = 0; i < 2; ++i) {
    for (const int worker : {0, 4, 8}) judge.add(worker, worker == 4 ? full : half);
    judge.judge_looks(false);
  }
  EXPECT_FALSE(judge.present());
  for (int i = 0; i < 2; ++i) {
    for (const int worker : {0, 4, 8}) judge.add(worker, worker == 4 ? full : half);
    judge.judge_looks(false);
  }
  ASSERT_TRUE(judge.present());
  EXPECT_EQ(judge.present()->worker, 4);
  EXPECT_EQ(to_string(*judge.of_all_looks()),
            "has a slow link: 256 KiB on average wait there to be sent in long calls, 64 KiB on the next "
            "host: moving "
            "data, not computing or input");
}

TEST(LinkJudge, NamesNobodyWhereAllQueuesAreFullOrNone) {
  for (const std::uint64_t bytes : {std::uint64_t{1000}, 8 * kFullQueue}) {
    LinkJudge judge;
    const std::uint32_t full = bytes >= kFullQueue ? 50 : 0;
    for (int i = 0; i < 4; ++i) {
      judge.add(0, {.looks = 50, .full = full, .bytes = 50 * bytes});
      judge.add(1, {.looks = 50, .full = full, .bytes = 75 * bytes});
      judge.judge_looks(false);
    }
    EXPECT_FALSE(judge.present());
    EXPECT_FALSE(judge.of_all_looks());
  }
}

TEST(LinkJudge, NamesNobodyAfterFewLooks) {
  LinkJudge judge;
  judge.add(0, {.looks = 500, .full = 500, .bytes = 500 * 8 * kFullQueue});
  judge.judge_looks(false);
  EXPECT_FALSE(judge.of_all_looks());
  judge.add(1, {.looks = 3});
  judge.judge_looks(false);
  EXPECT_FALSE(judge.of_all_looks());
}

TEST(LinkJudge, DropsLooksFromATimeInWhichOneWorkerWasLate) {
  LinkJudge judge;
  const auto look = [&judge](bool one_was_late) {
    judge.add(0, {.looks = 50, .full = 50, .bytes = 50 * 8 * kFullQueue});
    judge.add(1, {.looks = 50, .full = 0, .bytes = 0});
    judge.judge_looks(one_was_late);
  };
  for (int i = 0; i < 4; ++i) look(true);
  EXPECT_FALSE(judge.present());
  EXPECT_FALSE(judge.of_all_looks());
  for (int i = 0; i < 2; ++i) look(false);
  ASSERT_TRUE(judge.present());
  EXPECT_EQ(judge.present()->worker, 0);
}

CollectiveCall barrier() {
  CollectiveCall call;
  call.kind = CollectiveKind::kBarrier;
  return call;
}

/// Two members' records, which the test writes in turns.
struct Records {
  Records() {
    for (int rank = 0; rank < 2; ++rank) {
      records.push_back(std::make_unique<MemberRecord>());
      recorders.emplace_back(*records.back(), RecordOwner{.rank = rank, .worker = 10 + rank});
    }
  }
  [[nodiscard]] ObservedGroup group() const {
    return {.id = this,
            .communicator = "1",
            .records = {records[0].get(), records[1].get()},
            .workers = {10, 11}};
  }
  /// Member `last` comes last, and the call ends at once.
  void call(std::uint64_t number, int last) {
    const auto late = static_cast<std::size_t>(last);
    const CallRecorder::Entry first = recorders[1 - late].begin(barrier(), number);
    const CallRecorder::Entry second = recorders[late].begin(barrier(), number);
    recorders[1 - late].end_at_once(first);
    recorders[late].end_at_once(second);
  }
  std::vector<std::unique_ptr<MemberRecord>> records;
  std::vector<CallRecorder> recorders;
};

std::vector<CallArrivals> read(ArrivalReader& reader) {
  return reader.read(StampScale::at_this_moment(), 1'000'000'000);
}

TEST(ArrivalReader, GivesEachFinishedCallOnce) {
  Records records;
  ArrivalReader reader(records.group());
  EXPECT_TRUE(read(reader).empty());
  records.call(0, 1);
  records.call(1, 0);
  const CallRecorder::Entry open = records.recorders[0].begin(barrier(), 2);
  const std::vector<CallArrivals> calls = read(reader);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].last, 11);
  EXPECT_EQ(calls[1].last, 10);
  EXPECT_EQ(calls[1].number, 1u);
  EXPECT_GE(calls[1].last_at, calls[1].second_at);
  EXPECT_LE(calls[0].last_at, calls[1].second_at);
  EXPECT_GT(calls[1].away.all, 0);
  const CallRecorder::Entry other = records.recorders[1].begin(barrier(), 2);
  EXPECT_TRUE(read(reader).empty());
  records.recorders[0].end(open);
  records.recorders[1].end(other);
  EXPECT_EQ(read(reader).size(), 1u);
}

TEST(ArrivalReader, GoesOnAfterCallsThatWereReplaced) {
  Records records;
  ArrivalReader reader(records.group());
  std::uint64_t number = 0;
  while (number < 10 * kRecordedCalls) records.call(number++, 1);
  std::vector<CallArrivals> calls = read(reader);
  ASSERT_FALSE(calls.empty());
  EXPECT_LE(calls.size(), kRecordedCalls);
  EXPECT_EQ(calls.back().number, number - 1);
  records.call(number, 0);
  calls = read(reader);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].last, 10);
}

TEST(ArrivalReader, LeavesMessagesAndFailedCallsOut) {
  Records records;
  ArrivalReader reader(records.group());
  CollectiveCall message;
  message.kind = CollectiveKind::kSend;
  static_cast<void>(records.recorders[0].begin(message, 0));
  records.call(0, 1);
  records.recorders[0].fail(records.recorders[0].begin(barrier(), 1));
  records.recorders[1].fail(records.recorders[1].begin(barrier(), 1));
  records.call(2, 1);
  const std::vector<CallArrivals> calls = read(reader);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[1].number, 2u);
  EXPECT_FALSE(calls[1].away.is_known());
}

TEST(ArrivalReader, ReadsWhileMembersCall) {
  Records records;
  ArrivalReader reader(records.group());
  std::atomic<bool> done{false};
  std::thread members([&] {
    for (std::uint64_t number = 0; number < 200'000; ++number)
      records.call(number, static_cast<int>(number % 2));
    done = true;
  });
  std::uint64_t next = 0;
  while (!done) {
    for (const CallArrivals& call : read(reader)) {
      EXPECT_GE(call.number, next);
      EXPECT_EQ(call.last, 10 + static_cast<int>(call.number % 2));
      next = call.number + 1;
    }
  }
  members.join();
}

}  // namespace
}  // namespace cohort
