// What hooks learn of the calls of a communicator: each call begins and ends once, also those that fail, and
// a hook that throws harms nothing.
#include <cohort/collective/call_hooks.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <cohort/collective/communication_scope.h>
#include <cohort/collective/thread_communicator.h>

#include "members.h"

namespace cohort {
namespace {

/// An event with copies of what it borrows.
struct Seen {
  CallEvent event;
  std::string communicator;
  std::string error;
  bool is_end = false;
  std::thread::id thread = std::this_thread::get_id();
};

/// Hooks that keep what they see.
class Log {
 public:
  [[nodiscard]] const CallHooks* hooks() const { return &hooks_; }
  /// Of one member, in their order.
  [[nodiscard]] std::vector<Seen> of_member(int rank) {
    const std::lock_guard lock(mutex_);
    std::vector<Seen> found;
    std::ranges::copy_if(seen_, std::back_inserter(found),
                         [&](const Seen& seen) { return seen.event.rank == rank; });
    return found;
  }
  [[nodiscard]] std::size_t size() {
    const std::lock_guard lock(mutex_);
    return seen_.size();
  }

 private:
  void keep(const CallEvent& event, bool is_end) {
    const std::lock_guard lock(mutex_);
    seen_.push_back(
        {event, std::string(event.communicator), event.error == nullptr ? "" : event.error->what(), is_end});
  }

  const CallHooks hooks_{.on_call_begin = [this](const CallEvent& event) { keep(event, false); },
                         .on_call_end = [this](const CallEvent& event) { keep(event, true); }};
  std::mutex mutex_;
  std::vector<Seen> seen_;
};

class CallHooksOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Members, CallHooksOf, ::testing::Values(1, 2, 3, 4, 5));
class CallHooksOfSeveral : public CallHooksOf {};
INSTANTIATE_TEST_SUITE_P(Members, CallHooksOfSeveral, ::testing::Values(2, 3, 4, 5));

TEST_P(CallHooksOf, SeeBlockingCallsOnTheirOwnThread) {
  Log log;
  testing::for_each_member(GetParam(),
                           [&](Communicator& communicator) {
                             const Tensor tensor = Tensor::zeros({3}, DType::kFloat32);
                             const Tensor large = Tensor::zeros({20'000}, DType::kFloat64);
                             communicator.all_reduce(tensor, ReduceOp::kMax);
                             communicator.broadcast(large, communicator.size() - 1);
                             communicator.barrier();
                             const std::vector<Seen> seen = log.of_member(communicator.rank());
                             ASSERT_EQ(seen.size(), 6u);
                             for (std::size_t i = 0; i < seen.size(); ++i) {
                               const CallEvent& event = seen[i].event;
                               EXPECT_EQ(seen[i].is_end, i % 2 == 1);
                               EXPECT_EQ(seen[i].thread, std::this_thread::get_id());
                               EXPECT_EQ(event.number, i / 2);
                               EXPECT_EQ(event.members, GetParam());
                               EXPECT_EQ(seen[i].communicator, communicator.group_name());
                               EXPECT_FALSE(event.is_async);
                               EXPECT_EQ(event.error, nullptr);
                               EXPECT_GE(event.time, seen[i - i % 2].event.time);
                               EXPECT_EQ(event.handle, seen[i - i % 2].event.handle);
                             }
                             EXPECT_EQ(seen[0].event.kind, CollectiveKind::kAllReduce);
                             EXPECT_EQ(seen[0].event.op, ReduceOp::kMax);
                             EXPECT_EQ(seen[0].event.elements, 3u);
                             EXPECT_EQ(seen[2].event.kind, CollectiveKind::kBroadcast);
                             EXPECT_EQ(seen[2].event.dtype, DType::kFloat64);
                             EXPECT_EQ(seen[2].event.root, GetParam() - 1);
                             EXPECT_EQ(seen[4].event.kind, CollectiveKind::kBarrier);
                             EXPECT_NE(seen[0].event.handle, seen[2].event.handle);
                           },
                           {.hooks = log.hooks()});
}

TEST_P(CallHooksOf, SeeAsynchronousCallsFromTheirStartToTheirEnd) {
  Log log;
  testing::for_each_member(GetParam(),
                           [&](Communicator& communicator) {
                             std::vector<Tensor> tensors;
                             std::vector<Work> works;
                             for (int i = 0; i < 5; ++i) {
                               tensors.push_back(Tensor::zeros({i % 2 == 0 ? 10 : 10'000}, DType::kFloat32));
                               works.push_back(communicator.all_reduce_async(tensors.back(), ReduceOp::kSum));
                               std::vector<Seen> seen = log.of_member(communicator.rank());
                               std::erase_if(seen, &Seen::is_end);
                               ASSERT_EQ(seen.size(), static_cast<std::size_t>(i) + 1) << "it has begun";
                             }
                             for (Work& work : works) work.wait();
                             const std::vector<Seen> seen = log.of_member(communicator.rank());
                             ASSERT_EQ(seen.size(), 10u) << "each has ended before its wait does";
                             std::map<std::uint64_t, int> by_handle;
                             for (const Seen& one : seen) {
                               EXPECT_TRUE(one.event.is_async);
                               EXPECT_EQ(one.error, "");
                               by_handle[one.event.handle] += one.is_end ? 10 : 1;
                               EXPECT_TRUE(!one.is_end || by_handle[one.event.handle] == 11)
                                   << "begin, then end";
                             }
                             EXPECT_EQ(by_handle.size(), 5u);
                           },
                           {.hooks = log.hooks()});
}

TEST_P(CallHooksOfSeveral, SeeMessagesAndGroups) {
  Log log;
  testing::for_each_member(GetParam(),
                           [&](Communicator& communicator) {
                             const Tensor tensor = Tensor::zeros({2}, DType::kInt32);
                             if (communicator.rank() == 0) communicator.send(tensor, 1, 7);
                             if (communicator.rank() == 1) communicator.receive(tensor, 0, 7);
                             const std::unique_ptr<Communicator> group = communicator.split(0);
                             group->barrier();
                             const std::vector<Seen> seen = log.of_member(communicator.rank());
                             const std::size_t messages = communicator.rank() < 2 ? 2 : 0;
                             ASSERT_EQ(seen.size(), messages + 4);
                             if (messages > 0) {
                               EXPECT_EQ(seen[0].event.kind, communicator.rank() == 0
                                                                 ? CollectiveKind::kSend
                                                                 : CollectiveKind::kReceive);
                               EXPECT_EQ(seen[0].event.tag, 7);
                               EXPECT_EQ(seen[0].event.root, 1 - communicator.rank());
                             }
                             EXPECT_EQ(seen[messages].event.kind, CollectiveKind::kSplit);
                             EXPECT_EQ(seen[messages].event.number, 0u);
                             EXPECT_EQ(seen[messages + 2].event.kind, CollectiveKind::kBarrier);
                             EXPECT_EQ(seen[messages + 2].event.number, 0u) << "of the group";
                             EXPECT_EQ(seen[messages + 2].communicator, group->group_name());
                             EXPECT_NE(seen[messages].communicator, group->group_name());
                           },
                           {.hooks = log.hooks()});
}

TEST_P(CallHooksOfSeveral, AreToldWhyACallFailed) {
  Log log;
  testing::for_each_member(
      GetParam(),
      [&](Communicator& communicator) {
        const Tensor tensor = Tensor::zeros({communicator.rank() == 0 ? 3 : 4}, DType::kFloat32);
        if (communicator.rank() == 0)
          EXPECT_THROW(communicator.all_reduce(tensor, ReduceOp::kSum), InvalidArgument);
        else
          EXPECT_THROW(communicator.all_reduce_async(tensor, ReduceOp::kSum).wait(), InvalidArgument);
        EXPECT_THROW(static_cast<void>(communicator.barrier_async()), InvalidArgument);
        const std::vector<Seen> seen = log.of_member(communicator.rank());
        ASSERT_EQ(seen.size(), 4u);
        EXPECT_NE(seen[1].error.find("disagree"), std::string::npos) << seen[1].error;
        EXPECT_TRUE(seen[3].is_end);
        EXPECT_NE(seen[3].error.find("disagree"), std::string::npos) << seen[3].error;
      },
      {.hooks = log.hooks()});
}

TEST_P(CallHooksOf, ThatThrowAreDroppedAndTheCallsGoOn) {
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  const CallHooks hooks{.on_call_begin =
                            [&](const CallEvent& event) {
                              ++begun;
                              if (event.number == 1) throw std::runtime_error("the tracer is full");
                            },
                        .on_call_end = [&](const CallEvent&) { ++ended; }};
  ::testing::internal::CaptureStderr();
  testing::for_each_member(GetParam(),
                           [&](Communicator& communicator) {
                             const Tensor tensor = Tensor::full({5}, DType::kFloat32, 1);
                             for (int i = 0; i < 4; ++i) communicator.all_reduce(tensor, ReduceOp::kMax);
                             communicator.all_reduce_async(tensor, ReduceOp::kSum).wait();
                             EXPECT_EQ(tensor.span<float>()[0], static_cast<float>(communicator.size()));
                           },
                           {.hooks = &hooks});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(begun, 2 * GetParam());
  EXPECT_EQ(ended, GetParam());
  std::size_t warnings = 0;
  for (std::size_t at = said.find("the tracer is full"); at != std::string::npos;
       at = said.find("the tracer is full", at + 1))
    ++warnings;
  EXPECT_EQ(warnings, static_cast<std::size_t>(GetParam())) << said;
}

TEST(CallHooks, MayBeEmpty) {
  const CallHooks hooks;
  testing::for_each_member(2, [](Communicator& communicator) { communicator.barrier(); }, {.hooks = &hooks});
}

TEST(CallHooks, StayThroughScopes) {
  Log log;
  testing::for_each_member(1,
                           [&](Communicator& communicator) {
                             {
                               const CommunicationScope scope(communicator, {.timeout_seconds = 5});
                               communicator.barrier();
                             }
                             communicator.barrier();
                           },
                           {.hooks = log.hooks()});
  EXPECT_EQ(log.size(), 4u);
}

TEST(CallHooks, EndACallWhoseWorkNobodyHolds) {
  Log log;
  testing::for_each_member(2,
                           [&](Communicator& communicator) {
                             const Tensor tensor = Tensor::zeros({5}, DType::kFloat32);
                             static_cast<void>(communicator.all_reduce_async(tensor, ReduceOp::kSum));
                           },
                           {.hooks = log.hooks()});
  EXPECT_EQ(log.size(), 4u);
  for (const int rank : {0, 1})
    for (const Seen& seen : log.of_member(rank)) EXPECT_EQ(seen.error, "");
}

TEST(CallHooks, EndACallThatIsGivenUp) {
  Log log;
  auto communicators = make_thread_communicators(2, {.hooks = log.hooks()});
  const Tensor tensor = Tensor::zeros({5}, DType::kFloat32);
  Work work = communicators[0]->all_reduce_async(tensor, ReduceOp::kSum);
  communicators[1]->abort(Aborted("enough"));
  EXPECT_THROW(work.wait(), Aborted);
  const std::vector<Seen> seen = log.of_member(0);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_NE(seen[1].error.find("enough"), std::string::npos);
}

}  // namespace
}  // namespace cohort
