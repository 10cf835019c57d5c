// A member's record of its calls: what a reader gets, while the member writes, after it was killed in the
// middle, and after the ring has gone round.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <new>
#include <thread>

#include <gtest/gtest.h>

#include "collective/record/call_record.h"

namespace cohort {
namespace {

CollectiveCall all_reduce(std::size_t elements) {
  CollectiveCall call;
  call.kind = CollectiveKind::kAllReduce;
  call.dtype = DType::kFloat32;
  call.op = ReduceOp::kMax;
  call.elements = elements;
  return call;
}

ReportedMember read(const MemberRecord& record) {
  ReportedMember member;
  EXPECT_TRUE(read_record(record, StampScale::at_this_moment(), member));
  return member;
}

TEST(CallRecord, IsNobodysBeforeItsMemberIsThere) {
  const MemberRecord record;
  ReportedMember member;
  EXPECT_FALSE(read_record(record, StampScale::at_this_moment(), member));
}

TEST(CallRecord, HasAllFieldsOfACall) {
  MemberRecord record;
  CallRecorder recorder(record, {.rank = 3, .worker = 2, .communicator = "1.4.0"});
  CollectiveCall call = all_reduce(1000);
  call.priority = Priority::kUrgent;
  const CallRecorder::Entry entry = recorder.begin(call, 17);
  recorder.explain(entry, "reads w");
  recorder.start(entry);
  recorder.end(entry);
  CollectiveCall message;
  message.kind = CollectiveKind::kReceive;
  message.dtype = DType::kInt64;
  message.root = 5;
  message.tag = 99;
  message.elements = 7;
  static_cast<void>(recorder.begin(message, 0));

  const ReportedMember member = read(record);
  EXPECT_EQ(member.rank, 3);
  EXPECT_EQ(member.worker, 2);
  EXPECT_EQ(member.pid, ::getpid());
  EXPECT_EQ(member.begun, 18u);
  EXPECT_EQ(std::string(record.communicator.data()), "1.4.0");
  ASSERT_EQ(member.calls.size(), 2u);
  const RecordedCall& first = member.calls[0];
  EXPECT_EQ(to_string(first), "all_reduce #17 (float32[1000], max, urgent), which reads w");
  EXPECT_TRUE(first.ended);
  EXPECT_GE(first.arrived_ago, *first.started_ago);
  EXPECT_GE(*first.started_ago, *first.ended_ago);
  EXPECT_LT(first.arrived_ago, 10);
  EXPECT_EQ(to_string(member.calls[1]), "receive (int64[7], from rank 5, tag 99)");
  EXPECT_TRUE(member.calls[1].is_open());
  EXPECT_EQ(open_message(member), &member.calls[1]);
  EXPECT_EQ(open_collective(member), nullptr);
  EXPECT_EQ(finished(member), 18u);
}

TEST(CallRecord, TellsHowCallsEnd) {
  MemberRecord record;
  CallRecorder recorder(record, {});
  recorder.end_at_once(recorder.begin(all_reduce(1), 0));
  recorder.fail(recorder.begin(all_reduce(2), 1));
  static_cast<void>(recorder.begin(all_reduce(3), 2));
  const ReportedMember member = read(record);
  EXPECT_TRUE(member.calls[0].ended && !member.calls[0].ended_ago);
  EXPECT_TRUE(member.calls[1].failed && !member.calls[1].ended);
  EXPECT_EQ(open_collective(member), &member.calls[2]);
  EXPECT_EQ(finished(member), 2u);
}

TEST(CallRecord, KeepsTheLatestCallsWhenTheRingGoesRound) {
  MemberRecord record;
  CallRecorder recorder(record, {});
  const CallRecorder::Entry old = recorder.begin(all_reduce(0), 0);
  for (std::size_t number = 1; number < 3 * kRecordedCalls + 7; ++number)
    recorder.end_at_once(recorder.begin(all_reduce(number), number));
  recorder.end(old);  // whose place another call has
  const ReportedMember member = read(record);
  ASSERT_EQ(member.calls.size(), kRecordedCalls);
  for (std::size_t i = 0; i < kRecordedCalls; ++i) {
    ASSERT_EQ(member.calls[i].number, 2 * kRecordedCalls + 7 + i);
    ASSERT_EQ(member.calls[i].elements, member.calls[i].number);
    ASSERT_FALSE(member.calls[i].ended_ago);
  }
  EXPECT_EQ(member.torn, 0);
}

TEST(CallRecord, CountsCollectivesThatMessagesHaveReplaced) {
  MemberRecord record;
  CallRecorder recorder(record, {});
  recorder.end(recorder.begin(all_reduce(1), 41));
  CollectiveCall message;
  message.kind = CollectiveKind::kSend;
  for (std::size_t i = 0; i < kRecordedCalls; ++i) recorder.end(recorder.begin(message, 0));
  EXPECT_EQ(finished(read(record)), 42u);
}

TEST(CallRecord, SaysMoreElementsThanItCanHoldAsItsMost) {
  MemberRecord record;
  CallRecorder recorder(record, {});
  static_cast<void>(recorder.begin(all_reduce(std::size_t{1} << 50), 0));
  EXPECT_EQ(read(record).calls[0].elements, ElementsField::kMost);
}

// A reader beside the writer gets whole entries or none: of each, the elements are the number.
TEST(CallRecord, IsNeverTornForAReaderWhoDoesNotSeeIt) {
  MemberRecord record;
  CallRecorder recorder(record, {});
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    for (std::uint64_t number = 0; !ends; ++number) recorder.end(recorder.begin(all_reduce(number), number));
  });
  int entries = 0;
  for (int i = 0; i < 2000 || entries < 100'000; ++i) {
    const ReportedMember member = read(record);
    for (const RecordedCall& call : member.calls) {
      ASSERT_EQ(call.number, call.elements);
      ++entries;
    }
  }
  ends = true;
  writer.join();
}

TEST(CallRecord, OfAMemberThatWasKilledInTheMiddleOfAnEntryLacksThatEntry) {
  void* const memory =
      ::mmap(nullptr, sizeof(MemberRecord), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const record = new (memory) MemberRecord;
  const pid_t child = ::fork();
  if (child == 0) {
    CallRecorder recorder(*record, {.rank = 1, .worker = 1});
    recorder.end(recorder.begin(all_reduce(10), 0));
    static_cast<void>(recorder.begin(all_reduce(11), 1));
    // As far as `begin` comes when it is killed after its first stores.
    record->entries[2].version.store(5);
    record->entries[2].arrival.store(1);
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  const ReportedMember member = read(*record);
  EXPECT_EQ(member.pid, child);
  EXPECT_EQ(member.torn, 1);
  ASSERT_EQ(member.calls.size(), 2u);
  EXPECT_TRUE(member.calls[0].ended);
  EXPECT_EQ(to_string(*open_collective(member)), "all_reduce #1 (float32[11], max)");
  ::munmap(memory, sizeof(MemberRecord));
}

TEST(CallRecord, OfMemoryThatIsSomethingElseByNowHasNoCalls) {
  MemberRecord record;
  const CallRecorder recorder(record, {});
  record.entries[0].version.store(2);
  record.entries[0].what.store(~std::uint64_t{0});
  const ReportedMember member = read(record);
  EXPECT_TRUE(member.calls.empty());
  EXPECT_EQ(member.torn, 1);
}

}  // namespace
}  // namespace cohort
