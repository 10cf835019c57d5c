// What a report says: lines that stay short, a table, and JSON from which it is read again.
#include "collective/record/job_report.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>

#include "thrown.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

RecordedCall call_of(CollectiveKind kind, std::uint64_t number, double arrived_ago) {
  RecordedCall call;
  call.kind = kind;
  call.dtype = DType::kFloat32;
  call.elements = 8;
  call.number = number;
  call.arrived_ago = arrived_ago;
  return call;
}

RecordedCall ended(RecordedCall call, double ago) {
  call.ended = true;
  call.ended_ago = ago;
  return call;
}

ReportedMember member_of(int rank, std::vector<RecordedCall> calls) {
  ReportedMember member{
      .rank = rank, .worker = rank, .host = fmt::format("n{}", rank / 64), .pid = 1000 + rank};
  member.is_readable = true;
  member.process = ProcessState::kRunning;
  for (const RecordedCall& call : calls) member.begun = std::max(member.begun, call.number + 1);
  member.calls = std::move(calls);
  return member;
}

/// Of 128 members all but three wait in the same call: one calls something else, one is late, one has died.
JobReport report_of_128() {
  JobReport report{.communicator = "1",
                   .time = "2026-01-31T12:00:00.000Z",
                   .host = "n0",
                   .error_code = "unavailable",
                   .error = "all_reduce #17: worker 90 (host n1, pid 1090) is gone",
                   .error_call = "all_reduce #17",
                   .error_member = 90};
  for (int rank = 0; rank < 128; ++rank) {
    const RecordedCall before = ended(call_of(CollectiveKind::kAllReduce, 16, 1.5), 1.25);
    const RecordedCall now = call_of(rank == 70 ? CollectiveKind::kBroadcast : CollectiveKind::kAllReduce, 17,
                                     rank < 64 ? 1.0 : 0.5);
    const bool arrives = rank != 3 && rank != 90;
    report.members.push_back(member_of(rank, arrives ? std::vector{before, now} : std::vector{before}));
  }
  report.members[90].process = ProcessState::kGone;
  return report;
}

TEST(RanksOf, AreRangesWhereRanksFollowEachOther) {
  EXPECT_EQ(ranges_of(std::vector{5}), "5");
  EXPECT_EQ(ranges_of(std::vector{0, 1, 2, 3}), "0-3");
  EXPECT_EQ(ranges_of(std::vector{0, 2, 3, 5, 127}), "0,2-3,5,127");
}

TEST(InSeconds, ChangesTheUnitBelowAMillisecond) {
  EXPECT_EQ(in_seconds(0), "0 s");
  EXPECT_EQ(in_seconds(0.00003), "30 us");
  EXPECT_EQ(in_seconds(0.0015), "0.0015 s");
  EXPECT_EQ(in_seconds(601.25), "601 s");
}

TEST(Lines, OfManyMembersGroupThoseInTheSameState) {
  const auto lines = lines_of(report_of_128());
  EXPECT_EQ(lines[0],
            "communicator 1 of 128 members failed: all_reduce #17: worker 90 (host n1, pid 1090) is gone");
  EXPECT_EQ(lines[1], "finished by all: all_reduce #16 (float32[8], sum), 1.25 s ago");
  EXPECT_EQ(lines[2],
            "in a call: ranks 0-2,4-69,71-89,91-127 (hosts n0, n1) in all_reduce #17 (float32[8], sum) for "
            "0.5 s to "
            "1 s; rank 70 (worker 70, host n1) in broadcast #17 (float32[8], root 0) for 0.5 s");
  EXPECT_EQ(lines[3],
            "not arrived: ranks 3,90 (hosts n0, n1), last in all_reduce #16 (float32[8], sum), 1.25 s ago");
  EXPECT_EQ(lines[4], "died: rank 90 (worker 90, host n1), pid 1090");
}

TEST(Lines, StayShortWhenEveryMemberIsElsewhere) {
  JobReport report = report_of_128();
  for (ReportedMember& member : report.members)
    member.calls.back().number += static_cast<unsigned>(member.rank);
  for (ReportedMember& member : report.members) member.host = fmt::format("host{}", member.rank);
  for (const std::string& line : lines_of(report)) EXPECT_LT(line.size(), 600u) << line;
  EXPECT_THAT(lines_of(report)[2], HasSubstr("more groups"));
}

TEST(Lines, TellWhoHasStoppedAndLeft) {
  JobReport report = report_of_128();
  report.members.resize(4);
  report.members[1].process = ProcessState::kStopped;
  report.members[2].has_left = true;
  EXPECT_EQ(lines_of(report)[4],
            "died: nobody; stopped: rank 1 (worker 1, host n0), pid 1001; left: rank 2 (worker 2, host n0), "
            "pid 1002");
}

TEST(Lines, TellWhoWasSlowBefore) {
  JobReport report = report_of_128();
  EXPECT_EQ(lines_of(report).size(), 5u);
  report.slow = {"worker 3 (host n1) was last in 94 % of calls, by 5.1 ms on average"};
  const auto lines = lines_of(report);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[5], "slow before: worker 3 (host n1) was last in 94 % of calls, by 5.1 ms on average");
}

TEST(Lines, SayWhoIsSeenWhereMembersAreOnOtherNodes) {
  JobReport report = report_of_128();
  for (int rank = 64; rank < 128; ++rank) {
    ReportedMember& member = report.members[static_cast<std::size_t>(rank)];
    member = {.rank = rank, .worker = rank, .host = "n1"};
  }
  for (ReportedMember& member : report.members) {
    if (!member.calls.empty()) member.calls.front().ended_ago.reset();  // a small call on one node
  }
  const auto lines = lines_of(report);
  EXPECT_EQ(lines[1], "finished by all of this node: all_reduce #16 (float32[8], sum), 1.5 s ago");
  EXPECT_THAT(lines[0], HasSubstr("of 128 members, seen by ranks 0-63 (host n0) failed"));
  EXPECT_THAT(lines[3], HasSubstr("not arrived: rank 3 (worker 3, host n0)"));
  EXPECT_EQ(lines[4], "died: nobody; out of reach: rank 90 (worker 90, host n1)");
}

TEST(Lines, OfMembersWithoutCalls) {
  JobReport report{.communicator = "1", .error = "has had enough"};
  report.members.push_back(member_of(0, {}));
  const auto lines = lines_of(report);
  EXPECT_EQ(lines[0], "communicator 1 of 1 member failed: has had enough");
  EXPECT_EQ(lines[1], "finished by all: no collective");
  EXPECT_EQ(lines[2], "in a call: nobody");
  EXPECT_EQ(lines[3], "not arrived: nobody");
  EXPECT_EQ(lines[4], "died: nobody");
}

TEST(Lines, OfAMemberWhoseCallsOvertookEachOther) {
  JobReport report{.communicator = "1"};
  report.members.push_back(member_of(
      0, {call_of(CollectiveKind::kAllReduce, 4, 2), ended(call_of(CollectiveKind::kBarrier, 5, 1), 0.5)}));
  report.members.push_back(member_of(1, {ended(call_of(CollectiveKind::kAllReduce, 3, 3), 2)}));
  const auto lines = lines_of(report);
  EXPECT_EQ(lines[1], "finished by all: all_reduce #3 (float32[8], sum), 2 s ago");
  EXPECT_THAT(lines[2], HasSubstr("in all_reduce #4 (float32[8], sum) for 2 s"));
  EXPECT_THAT(lines[3], HasSubstr("rank 1 (worker 1, host n0), last in all_reduce #3"));
}

TEST(Json, GivesBackTheSameReport) {
  JobReport report = report_of_128();
  RecordedCall message = call_of(CollectiveKind::kSend, 0, 0.25);
  message.root = 7;
  message.tag = 12;
  report.members[5].calls.push_back(message);
  report.members[6].calls.back().words = "reads w";
  report.members[7].calls.back().priority = Priority::kUrgent;
  report.members[8].calls.back().started_ago = 0.125;
  report.members[9].torn = 2;
  report.members[10].calls.front().failed = true;
  report.members[127] = {.rank = 127, .worker = 127, .host = "n1"};
  report.slow = {"worker 3 was last"};
  const std::string json = to_json(report);
  const JobReport again = report_from_json(json, "report.json");
  EXPECT_EQ(to_json(again), json);
  EXPECT_EQ(lines_of(again), lines_of(report));
  EXPECT_EQ(table_of(again), table_of(report));
}

TEST(Json, TakesAnyBytesOfATextForWords) {
  JobReport report = report_of_128();
  report.error = "bad \xff byte\nand \"quotes\"";
  EXPECT_THAT(report_from_json(to_json(report), "f").error, HasSubstr("\nand \"quotes\""));
}

TEST(Json, ThatIsNoReportIsNamedInTheError) {
  using testing::message_of;
  for (const char* text :
       {"", "{", "[]", "{}", "7", "{\"cohort_report\": 1}", "{\"cohort_report\": \"x\"}"}) {
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                           [&] { static_cast<void>(report_from_json(text, "file.json")); }),
                HasSubstr("file.json is no report"))
        << text;
  }
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [] { static_cast<void>(report_from_json("{\"cohort_report\": 2}", "file.json")); }),
              HasSubstr("format 2"));
}

TEST(Table, HasARowForEachMember) {
  const std::string table = table_of(report_of_128());
  EXPECT_EQ(std::ranges::count(table, '\n'), 129);
  EXPECT_THAT(table, HasSubstr("   90     90  n1    gone            17  after all_reduce #16"));
  EXPECT_THAT(table, HasSubstr("   70     70  n1    running         17  in broadcast #17"));
}

}  // namespace
}  // namespace cohort
