// The report of a communicator that has failed, over threads: each fault names the rank, the host and the
// call that belong to it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/deadline.h>
#include <cohort/collective/call_purpose.h>
#include <cohort/collective/communication_scope.h>

#include "base/system_calls.h"
#include "collective/host_communicators.h"
#include "collective/record/job_report.h"
#include "thread_transport.h"

namespace cohort::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Tensor floats(std::int64_t elements) { return Tensor::zeros({elements}, DType::kFloat32); }

/// Takes the reports of communicators.
class Reports {
 public:
  [[nodiscard]] std::function<void(const JobReport&)> taker() {
    return [this](const JobReport& report) {
      const std::lock_guard lock(mutex_);
      reports_.push_back(report);
    };
  }
  [[nodiscard]] std::vector<JobReport> all() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }
  /// Of the only report.
  [[nodiscard]] std::vector<std::string> lines() {
    const std::vector<JobReport> reports = all();
    EXPECT_THAT(reports, SizeIs(1));
    return reports.empty() ? std::vector<std::string>(5) : lines_of(reports.front());
  }

 private:
  std::mutex mutex_;
  std::vector<JobReport> reports_;
};

using Body = std::function<void(Communicator&)>;

/// Runs `body` once per communicator, each on a thread of its own; an Error ends only that thread.
void run(std::vector<std::unique_ptr<Communicator>> communicators, const Body& body) {
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (auto& communicator : communicators) {
    threads.emplace_back([&body, own = std::move(communicator)]() mutable {
      try {
        const std::unique_ptr<Communicator> mine = std::move(own);
        body(*mine);
      } catch (const std::exception&) {
        // Each test looks at the report.
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_members(int members, Reports& reports, const Body& body, double timeout_seconds = 20) {
  NodeGroupOptions options;
  options.members = members;
  options.on_report = reports.taker();
  options.communication.timeout_seconds = timeout_seconds;
  run(make_node_communicators(options), body);
}

using MakeTransport = std::function<std::unique_ptr<Transport>(std::shared_ptr<Switchboard>, int rank)>;

/// The same over pretended nodes n0, n1, ... of as many members each.
void run_nodes(
    int nodes, int members, Reports& reports, const Body& body, double timeout_seconds = 20,
    const MakeTransport& make = [](auto board, int rank) {
      return std::make_unique<ThreadTransport>(std::move(board), rank);
    }) {
  const auto board = std::make_shared<Switchboard>(nodes * members);
  NetworkGroupOptions options;
  options.transport = [&](int rank) { return make(board, rank); };
  options.node.members = members;
  options.node.on_report = reports.taker();
  options.node.communication.timeout_seconds = timeout_seconds;
  for (int node = 0; node < nodes; ++node)
    options.node.workers.push_back({.rank = node, .node = node, .host = fmt::format("n{}", node)});
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int node = 0; node < nodes; ++node) {
    options.node.rank = node;
    for (auto& communicator : make_network_communicators(options))
      communicators.push_back(std::move(communicator));
  }
  run(std::move(communicators), body);
}

/// `rank 2 (worker 0, host HERE)`; of several, `ranks 0-1 (host HERE)`.
std::string named(const std::vector<int>& ranks) {
  return ranks.size() == 1 ? fmt::format("rank {} (worker 0, host {})", ranks.front(), host_name())
                           : fmt::format("ranks {} (host {})", ranges_of(ranks), host_name());
}

/// All ranks but the last.
std::vector<int> others(int members) {
  std::vector<int> ranks;
  for (int rank = 0; rank + 1 < members; ++rank) ranks.push_back(rank);
  return ranks;
}

/// Counts itself once its call has begun.
void wait_in_all_reduce(Communicator& communicator, std::int64_t elements, std::atomic<int>& in_the_call) {
  Work work = communicator.all_reduce_async(floats(elements), ReduceOp::kSum);
  ++in_the_call;
  work.wait();
}

void wait_until(const std::atomic<int>& count, int wanted) {
  const Deadline deadline = Deadline::after(20s);
  while (count < wanted && !deadline.expired()) std::this_thread::yield();
}

class Report : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] int members() const { return GetParam(); }
  [[nodiscard]] int last() const { return GetParam() - 1; }
};
INSTANTIATE_TEST_SUITE_P(Members, Report, ::testing::Values(2, 3, 4, 5));

TEST_P(Report, OfAMemberThatCallsSomethingElseNamesBothCalls) {
  Reports reports;
  run_members(members(), reports, [&](Communicator& communicator) {
    communicator.all_reduce(floats(1000), ReduceOp::kSum);
    if (communicator.rank() == last()) return communicator.barrier();
    communicator.all_reduce(floats(20), ReduceOp::kMax);
  });
  const auto lines = reports.lines();
  EXPECT_THAT(lines[0], HasSubstr("failed: "));
  EXPECT_THAT(lines[1], HasSubstr("finished by all: all_reduce #0 (float32[1000], sum)"));
  EXPECT_THAT(lines[2],
              AllOf(HasSubstr(named(others(members())) + " in all_reduce #1 (float32[20], max) for"),
                    HasSubstr(named({last()}) + " in barrier #1 for")));
  EXPECT_EQ(lines[3], "not arrived: nobody");
  EXPECT_EQ(lines[4], "died: nobody");
}

TEST_P(Report, OfALateMemberNamesWhatItDidLast) {
  Reports reports;
  run_members(
      members(), reports,
      [&](Communicator& communicator) {
        communicator.barrier();
        communicator.broadcast(floats(100'000), 1);
        if (communicator.rank() == last()) {
          while (!communicator.failure()) std::this_thread::sleep_for(1ms);
          return;
        }
        communicator.all_reduce(floats(3), ReduceOp::kSum);
      },
      0.3);
  const auto lines = reports.lines();
  EXPECT_THAT(lines[0], HasSubstr("deadline of "));
  EXPECT_THAT(lines[1], HasSubstr("finished by all: broadcast #1 (float32[100000], root 1), "));
  EXPECT_THAT(lines[2], HasSubstr(named(others(members())) + " in all_reduce #2 (float32[3], sum) for "));
  EXPECT_THAT(lines[3], HasSubstr(named({last()}) + ", last in broadcast #1 (float32[100000], root 1), "));
  // Whose deadline has passed has waited for that long; others may have come later.
  double longest = 0;
  const std::vector<JobReport> all = reports.all();
  ASSERT_FALSE(all.empty());
  for (const auto& member : all.front().members) {
    if (const auto* const open = open_collective(member)) longest = std::max(longest, open->arrived_ago);
  }
  // How long a tick of the counter lasts has been measured for some milliseconds only.
  EXPECT_GE(longest, 0.29);
}

TEST_P(Report, OfAnAbortHasItsText) {
  Reports reports;
  std::atomic<int> in_the_call = 0;
  run_members(members(), reports, [&](Communicator& communicator) {
    communicator.barrier();
    if (communicator.rank() != last()) return wait_in_all_reduce(communicator, 1'000'000, in_the_call);
    wait_until(in_the_call, members() - 1);
    communicator.abort(Aborted("the user has had enough"));
  });
  const auto lines = reports.lines();
  EXPECT_THAT(lines[0], HasSubstr("failed: the user has had enough"));
  EXPECT_EQ(reports.all().front().error_member, last());
  EXPECT_THAT(lines[2], HasSubstr(named(others(members())) + " in all_reduce #1 (float32[1000000], sum)"));
  EXPECT_THAT(lines[3], HasSubstr(named({last()}) + ", last in barrier #0"));
}

TEST_P(Report, OfAMemberThatLeftSaysSo) {
  for (const bool throws : {false, true}) {
    Reports reports;
    std::atomic<int> in_the_call = 0;
    run_members(members(), reports, [&](Communicator& communicator) {
      communicator.barrier();
      if (communicator.rank() != last()) return wait_in_all_reduce(communicator, 5, in_the_call);
      wait_until(in_the_call, members() - 1);
      if (throws) throw std::runtime_error("the member's own mistake");
    });
    const auto lines = reports.lines();
    EXPECT_THAT(lines[1], HasSubstr("finished by all: barrier #0"));
    EXPECT_THAT(lines[2], HasSubstr(named(others(members())) + " in all_reduce #1 (float32[5], sum)"));
    EXPECT_THAT(lines[3], HasSubstr(named({last()}) + ", last in barrier #0"));
    EXPECT_THAT(lines[4], HasSubstr("died: nobody; left: " + named({last()})));
  }
}

TEST_P(Report, CanBeReadAgain) {
  Reports reports;
  run_members(members(), reports, [](Communicator& communicator) {
    communicator.all_reduce(floats(2 + communicator.rank()), ReduceOp::kSum);
  });
  const JobReport report = reports.all().front();
  const JobReport again = report_from_json(to_json(report), "report.json");
  EXPECT_EQ(lines_of(again), lines_of(report));
  for (const ReportedMember& member : again.members) {
    EXPECT_EQ(member.process, ProcessState::kRunning);
    ASSERT_NE(open_collective(member), nullptr);
    EXPECT_EQ(open_collective(member)->elements, 2u + static_cast<std::size_t>(member.rank));
  }
}

TEST(ReportOfOneMember, IsMadeOfAnAbort) {
  Reports reports;
  run_members(1, reports, [](Communicator& communicator) {
    communicator.barrier();
    communicator.abort(Aborted("has had enough"));
  });
  const auto lines = reports.lines();
  EXPECT_EQ(lines[0],
            "communicator " + reports.all().front().communicator + " of 1 member failed: has had enough");
  EXPECT_THAT(lines[1], HasSubstr("barrier #0"));
}

TEST(Report, HasCallsOfBothPrioritiesAndMessages) {
  Reports reports;
  run_members(2, reports, [](Communicator& communicator) {
    communicator.all_reduce(floats(7), ReduceOp::kSum, {.priority = Priority::kUrgent});
    Work normal = communicator.all_reduce_async(floats(300'000), ReduceOp::kSum);
    Work urgent = communicator.barrier_async({.priority = Priority::kUrgent});
    urgent.wait();
    normal.wait();
    if (communicator.rank() == 0) {
      communicator.send(floats(10), 1, 4);
    } else {
      communicator.receive(floats(10), 0, 4);
      communicator.abort(Aborted("enough"));
    }
    communicator.barrier();
  });
  const JobReport report = reports.all().front();
  const ReportedMember& sender = report.members[0];
  ASSERT_GE(sender.calls.size(), 4u);
  EXPECT_EQ(to_string(sender.calls[0]), "all_reduce #0 (float32[7], sum, urgent)");
  EXPECT_EQ(to_string(sender.calls[1]), "all_reduce #1 (float32[300000], sum)");
  EXPECT_EQ(to_string(sender.calls[2]).substr(0, 10), "barrier #2");
  EXPECT_EQ(sender.calls[2].priority, Priority::kUrgent);
  EXPECT_EQ(to_string(sender.calls[3]), "send (float32[10], to rank 1, tag 4)");
  EXPECT_EQ(to_string(report.members[1].calls[3]), "receive (float32[10], from rank 0, tag 4)");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(sender.calls[static_cast<std::size_t>(i)].ended);
  EXPECT_TRUE(sender.calls[1].started_ago && sender.calls[1].ended_ago);
}

TEST(Report, OfAMessageThatIsLateSaysThatItFailed) {
  Reports reports;
  run_members(2, reports, [](Communicator& communicator) {
    if (communicator.rank() == 0) {
      EXPECT_THROW(communicator.receive(floats(1), 1, 3, 0.05), DeadlineExceeded);
      communicator.abort(Aborted("enough"));
    }
    communicator.barrier();
  });
  const JobReport report = reports.all().front();
  EXPECT_TRUE(report.members[0].calls[0].failed);
  EXPECT_EQ(open_message(report.members[0]), nullptr);
}

TEST(Report, OfAGroupNamesTheCallThatSplitItOff) {
  Reports reports;
  run_members(4, reports, [](Communicator& communicator) {
    communicator.barrier();
    const auto group = communicator.split(communicator.rank() % 2 + 5);
    group->barrier();
    if (communicator.rank() == 3) group->abort(Aborted("enough of the group"));
    if (communicator.rank() % 2 == 1) {
      EXPECT_THROW(group->barrier(), Aborted);
    }
    communicator.barrier();
  });
  const JobReport report = reports.all().front();
  EXPECT_THAT(report.communicator, ::testing::MatchesRegex("[0-9]+\\.1\\.6"));
  EXPECT_THAT(report.members, SizeIs(2));
}

TEST(Report, HasThePurposeOfACallThatWaits) {
  Reports reports;
  run_members(
      2, reports,
      [](Communicator& communicator) {
        PurposeOf purpose(77, Caller::kMember, [] { return PurposeWords{"reads the weights"}; });
        const CommunicationScope scope(communicator, {}, purpose);
        if (communicator.rank() == 0) communicator.all_reduce(floats(1), ReduceOp::kSum);
        while (!communicator.failure()) std::this_thread::sleep_for(1ms);
      },
      0.2);
  EXPECT_THAT(reports.lines()[2],
              HasSubstr("all_reduce #0 (float32[1], sum), which reads the weights for 0.2"));
}

// Each node makes its own, with the calls of its own members.
TEST(Report, IsMadeByEachNodeOfACommunicatorOverSeveral) {
  Reports reports;
  run_nodes(
      2, 2, reports,
      [](Communicator& communicator) {
        communicator.all_reduce(floats(100'000), ReduceOp::kSum);
        if (communicator.rank() != 3) communicator.all_reduce(floats(2), ReduceOp::kSum);
        while (!communicator.failure()) std::this_thread::sleep_for(1ms);
      },
      0.5);
  const std::vector<JobReport> all = reports.all();
  ASSERT_THAT(all, SizeIs(2));
  for (const JobReport& report : all) {
    const auto lines = lines_of(report);
    const bool is_second = report.host == "n1";
    EXPECT_THAT(lines[0],
                HasSubstr(is_second ? "seen by ranks 2-3 (host n1)" : "seen by ranks 0-1 (host n0)"));
    EXPECT_THAT(lines[1], HasSubstr("finished by all of this node: all_reduce #0 (float32[100000], sum), "));
    EXPECT_THAT(lines[2], HasSubstr("in all_reduce #1 (float32[2], sum) for "));
    EXPECT_THAT(lines[3], HasSubstr(is_second ? "rank 3 (worker 1, host n1), last in all_reduce #0"
                                              : "not arrived: nobody"));
    EXPECT_THAT(report.members, SizeIs(4));
  }
}

TEST(Report, OfAMemberThatLeftByAnErrorIsMadeByAllNodesThatWaitForIt) {
  Reports reports;
  std::mutex mutex;
  std::vector<std::string> errors;
  run_nodes(2, 2, reports, [&](Communicator& communicator) {
    communicator.barrier();
    if (communicator.rank() == 3) throw std::runtime_error("the member's own mistake");
    try {
      communicator.all_reduce(floats(5), ReduceOp::kSum);
    } catch (const Aborted& error) {
      const std::lock_guard lock(mutex);
      errors.emplace_back(error.what());
    }
  });
  EXPECT_THAT(errors, ::testing::AllOf(SizeIs(3), ::testing::Each(HasSubstr("member 3"))));
  const std::vector<JobReport> all = reports.all();
  ASSERT_THAT(all, SizeIs(2));
  for (const JobReport& report : all) {
    const auto lines = lines_of(report);
    EXPECT_THAT(lines[2], HasSubstr("in all_reduce #1 (float32[5], sum) for "));
    if (report.host != "n1") continue;
    EXPECT_THAT(lines[3], HasSubstr("rank 3 (worker 1, host n1), last in barrier #0"));
    EXPECT_THAT(lines[4], HasSubstr("left: rank 3 (worker 1, host n1)"));
  }
}

/// Learns late that its messages have come, but at once what other nodes tell of failures.
class SlowTransport final : public ThreadTransport {
 public:
  using ThreadTransport::ThreadTransport;

  [[nodiscard]] std::optional<std::size_t> poll(Ticket ticket) override {
    auto arrival = arrivals_.find(ticket);
    if (arrival == arrivals_.end()) {
      const std::optional<std::size_t> bytes = ThreadTransport::poll(ticket);
      if (!bytes) return std::nullopt;
      arrival = arrivals_.emplace(ticket, Arrival{*bytes, Deadline::after(30ms)}).first;
    }
    if (!arrival->second.known.expired()) return std::nullopt;
    const std::size_t bytes = arrival->second.bytes;
    arrivals_.erase(arrival);
    return bytes;
  }

 private:
  struct Arrival {
    std::size_t bytes;
    Deadline known;
  };
  std::map<Ticket, Arrival> arrivals_;
};

// As the workers of a preempted job do. Those of the fast node have left when the others come to the end.
TEST(NoReport, IsMadeWhereAllMembersLeaveByAnExceptionAfterTheSameCall) {
  const auto make = [](std::shared_ptr<Switchboard> board, int rank) -> std::unique_ptr<Transport> {
    if (rank < 2) return std::make_unique<SlowTransport>(std::move(board), rank);
    return std::make_unique<ThreadTransport>(std::move(board), rank);
  };
  const Body calls[] = {
      [](Communicator& communicator) { communicator.barrier(); },
      [](Communicator& communicator) { communicator.all_reduce(floats(100'000), ReduceOp::kSum); },
      [](Communicator& communicator) {
        communicator.all_gather(floats(20'000), floats(20'000 * std::int64_t{communicator.size()}));
      },
  };
  for (const int members : {1, 2}) {
    for (const Body& call : calls) {
      Reports reports;
      std::atomic<int> finished{0};
      run_nodes(
          4 / members, members, reports,
          [&](Communicator& communicator) {
            call(communicator);
            ++finished;
            throw std::runtime_error("is to end");
          },
          20, make);
      EXPECT_EQ(finished, 4);
      EXPECT_EQ(reports.all().size(), 0u);
    }
  }
}

}  // namespace
}  // namespace cohort::testing
