// What a look at a job says, and how the processes of a job put it together.
#include "observation/job_look.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/job_socket.h"
#include "observation/look_server.h"
#include "thrown.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

RecordedCall call_of(std::uint64_t number, double arrived_ago, std::optional<double> ended_ago = {}) {
  RecordedCall call;
  call.kind = CollectiveKind::kAllReduce;
  call.dtype = DType::kFloat32;
  call.elements = 256;
  call.number = number;
  call.arrived_ago = arrived_ago;
  call.ended_ago = ended_ago;
  call.ended = ended_ago.has_value();
  return call;
}

/// A communicator of so many members, of which these are readable: the last of all is in no call.
CommunicatorLook communicator_of(int members, int from, int to, const std::string& name = "1") {
  CommunicatorLook look{.report = {.communicator = name, .host = "n0"}, .rate = {.seconds = 1.0 + from}};
  for (int rank = 0; rank < members; ++rank) {
    ReportedMember member{.rank = rank, .worker = rank, .host = fmt::format("n{}", rank / 2)};
    member.is_readable = rank >= from && rank < to;
    if (member.is_readable) {
      member.process = ProcessState::kRunning;
      member.calls = {call_of(6, 2.5, 2)};
      if (rank + 1 < members) member.calls.push_back(call_of(7, 1.5));
      member.begun = member.calls.back().number + 1;
    }
    look.report.members.push_back(std::move(member));
  }
  return look;
}

JobLook look_of(int members, int from, int to) {
  JobLook look{.job = "42", .chief = 1000, .seconds = 10, .nodes = (members + 1) / 2};
  for (int rank = from; rank < to; ++rank)
    look.workers.push_back({rank, fmt::format("n{}", rank / 2), 1000 + rank, 1u << 20, 2u << 20});
  look.communicators.push_back(communicator_of(members, from, to));
  return look;
}

TEST(CallRate, IsOfTheCallsThatHaveEnded) {
  const CallRate rate = rate_of({call_of(0, 4, 3), call_of(1, 2, 1.5), call_of(2, 1)});
  EXPECT_EQ(rate.calls, 2u);
  EXPECT_EQ(rate.bytes, 2048u);
  EXPECT_DOUBLE_EQ(rate.seconds, 4);
  EXPECT_DOUBLE_EQ(rate.seconds_in_calls, 1.5);
  EXPECT_TRUE(rate.is_timed);
  RecordedCall small = call_of(3, 1);
  small.ended = true;  // when its last member came
  EXPECT_FALSE(rate_of({small}).is_timed);
}

TEST(JobLook, KeepsTheLatestCallsAndThoseThatHaveNotEnded) {
  ReportedMember member;
  member.calls.push_back(call_of(0, 100));
  for (std::uint64_t number = 1; number < 100; ++number)
    member.calls.push_back(call_of(number, 100.0 - static_cast<double>(number), 0.5));
  keep_latest_calls(member);
  std::vector<std::uint64_t> kept;
  for (const RecordedCall& call : member.calls) kept.push_back(call.number);
  EXPECT_THAT(kept, ElementsAre(0, 96, 97, 98, 99));
}

TEST(JobLook, PutsTheNodesTogether) {
  JobLook look = look_of(5, 2, 4);
  merge(look, look_of(5, 4, 5));
  merge(look, look_of(5, 0, 2));
  ASSERT_EQ(look.communicators.size(), 1u);
  for (const ReportedMember& member : look.communicators[0].report.members) EXPECT_TRUE(member.is_readable);
  EXPECT_DOUBLE_EQ(look.communicators[0].rate.seconds, 1) << "not that of the first member";
  std::vector<int> workers;
  for (const WorkerLook& worker : look.workers) workers.push_back(worker.worker);
  EXPECT_THAT(workers, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(
      to_text(look),
      AllOf(HasSubstr("Job 42: 5 workers on 3 nodes, for 10 s\n"),
            HasSubstr("finished by all: all_reduce #6"),
            HasSubstr("in a call: ranks 0-3 (hosts n0, n1) in all_reduce #7"), HasSubstr("for 1.5 s\n"),
            HasSubstr("not arrived: rank 4 (worker 4, host n2), last in all_reduce #6"),
            HasSubstr("died: nobody\n"), HasSubstr("     4  n2       1004   1.00 MiB   2.00 MiB\n")));
}

TEST(JobLook, KeepsCommunicatorsApartThatHaveTheSameName) {
  JobLook look = look_of(2, 0, 2);
  merge(look, look_of(2, 0, 2));  // another one with the same members
  look.communicators.push_back(communicator_of(3, 0, 3));
  EXPECT_EQ(look.communicators.size(), 3u);
}

TEST(JobLook, ComesWholeThroughJson) {
  JobLook look = look_of(5, 0, 4);
  look.restarts = 2;
  look.silent = {"worker 4 (host n2, pid 1004)"};
  look.slow = {"worker 3 (host n1, pid 1003) was last"};
  look.communicators[0].rate = {1.5, 2, 3, 0.5, false};
  const std::string json = to_json(look);
  EXPECT_EQ(to_json(look_from_json(json)), json);
  EXPECT_THAT(
      to_text(look_from_json(json)),
      AllOf(HasSubstr("started again 2 times\nslow: worker 3 (host n1, pid 1003) was last\nno answer from: "),
            HasSubstr("no answer from: worker 4 (host n2, pid 1004)\n")));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [] { return look_from_json("{"); }),
              HasSubstr("what is no look at it"));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [] { return look_from_json(R"({"cohort_look": 9})"); }),
              HasSubstr("in format 9"));
}

TEST(JobLook, StaysReadableOfManyWorkers) {
  const std::string text = to_text(look_of(1000, 0, 1000));
  EXPECT_LT(std::ranges::count(text, '\n'), 90);
  EXPECT_THAT(text, HasSubstr("and 936 more; "));
}

/// The processes of a job, of which those of `silent` nodes hear nothing; two workers on each node.
class Job {
 public:
  Job(int count, const std::vector<int>& silent) {
    std::vector<WorkerInfo> workers;
    workers.reserve(static_cast<std::size_t>(count));
    for (int rank = 0; rank < count; ++rank)
      workers.push_back({rank, rank / 2, rank % 2, fmt::format("n{}", rank / 2), 1000 + rank});
    servers_.resize(workers.size());
    const auto hears = [silent](int rank) { return std::ranges::find(silent, rank / 2) == silent.end(); };
    const std::string name = fmt::format("look-{}", ::getpid());
    // Backwards, since the first one must find all others.
    for (int rank = count - 1; rank >= 0; --rank) {
      const auto deliver = [this, hears](int to, const std::string& note) {
        if (hears(to)) servers_[static_cast<std::size_t>(to)]->hear(note);
      };
      // All have the same process number here, so only one of them can listen under it.
      LookServerOptions options{.job = rank == 0 ? name : fmt::format("{}.{}", name, rank),
                                .workers = workers,
                                .rank = rank,
                                .look =
                                    [rank, count] {
                                      const int from = rank - rank % 2;
                                      if (rank % 2 == 1) return JobLook{};  // has no records
                                      JobLook look = look_of(count, from, std::min(from + 2, count));
                                      // Of more pieces than one.
                                      for (int i = 0; i < 20; ++i)
                                        look.communicators.push_back(communicator_of(
                                            count, from, std::min(from + 2, count), fmt::format("2.{}", i)));
                                      return look;
                                    },
                                .tell = deliver,
                                .tell_all =
                                    [count, rank, deliver](const std::string& note) {
                                      for (int to = 0; to < count; ++to) {
                                        if (to != rank) deliver(to, note);
                                      }
                                    },
                                .limit = silent.empty() ? 20'000ms : 50ms};
      servers_[static_cast<std::size_t>(rank)] = std::make_unique<LookServer>(std::move(options));
    }
    socket_ = {name, 1000, ::getpid()};
  }
  ~Job() {
    for (const auto& server : servers_) server->stop();
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] JobLook look() const { return look_from_json(read_from(socket_, 20s)); }
  [[nodiscard]] LookServer& server(int rank) { return *servers_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<std::unique_ptr<LookServer>> servers_;
  JobSocket socket_;
};

TEST(LookServer, AnswersWithAllNodes) {
  for (const int count : {1, 2, 3, 4, 7}) {
    const Job job(count, {});
    for (int i = 0; i < 3; ++i) {
      const JobLook look = job.look();
      EXPECT_TRUE(look.silent.empty());
      EXPECT_EQ(look.workers.size(), static_cast<std::size_t>(count));
      ASSERT_EQ(look.communicators.size(), 21u);
      for (const CommunicatorLook& communicator : look.communicators) {
        for (const ReportedMember& member : communicator.report.members) EXPECT_TRUE(member.is_readable);
      }
    }
  }
}

TEST(LookServer, NamesNodesThatDoNotAnswer) {
  const Job job(7, {1, 3});
  const JobLook look = job.look();
  EXPECT_THAT(look.silent, ElementsAre("worker 2 (host n1, pid 1002)", "worker 6 (host n3, pid 1006)"));
  EXPECT_EQ(look.workers.size(), 7u) << "silent workers are workers, too";
  EXPECT_THAT(to_text(look), HasSubstr("seen by ranks 0-1,4-5 (hosts n0, n2)"));
}

/// While it lives, the process can open so many files more.
class FreeDescriptors {
 public:
  explicit FreeDescriptors(rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int first = ::dup(STDERR_FILENO);
    ::close(first);
    const rlimit now{static_cast<rlim_t>(first) + count, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~FreeDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FreeDescriptors(const FreeDescriptors&) = delete;
  FreeDescriptors& operator=(const FreeDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(LookServer, EndsWhereNothingMoreCanBeOpened) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer opens pipes itself, to look at objects";
#endif
  // The chief's question, as processes of a job send it: it starts the thread of one that does not listen.
  std::string question(32, '\0');
  const std::uint64_t mark = 0x6b6f6f6c626f6aULL;
  std::memcpy(question.data(), &mark, sizeof mark);
  for (rlim_t free = 0; free < 6; ++free) {
    const FreeDescriptors descriptors(free);
    Job job(2, {});
    EXPECT_TRUE(job.server(1).hear(question));
  }
}

TEST(LookServer, LeavesOtherNotesToOthers) {
  Job job(2, {});
  EXPECT_FALSE(job.server(1).hear("short"));
  EXPECT_FALSE(job.server(1).hear(std::string(100, 'x')));
}

}  // namespace
}  // namespace cohort
