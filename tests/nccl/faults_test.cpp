// What goes wrong on one GPU, or in NCCL itself, ends in one error on all members, in time.
#include <atomic>
#include <barrier>
#include <chrono>
#include <future>
#include <string>

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <cohort/base/deadline.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/tensor.h>

#include "gpu_members.h"
#include "members.h"
#include "nccl_faults.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kMembers = 3;

class NcclFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (static_cast<int>(cuda::devices().size()) < kMembers) GTEST_SKIP() << "needs " << kMembers << " GPUs";
    if (find_injection() == nullptr) GTEST_SKIP() << "only the stand-in fails when it is told to";
    // Another member's failure may have come before an earlier fault.
    for (int rank = 0; rank < kMembers; ++rank) inject(rank, NcclFault::kNone);
  }
};

void all_reduce(Communicator& communicator) {
  communicator.all_reduce(Tensor::full({1000}, DType::kFloat32, 1), ReduceOp::kSum);
}

/// The text that the second of two all-reduces ends in, the same on all members, and the same again for what
/// they call afterwards. `before_second` is called by each member.
std::string failure_of_second(
    ErrorCode code, const CommunicationOptions& options,
    const std::function<void(Communicator&)>& before_second,
    const std::function<void()>& in_the_end = [] {}) {
  Texts texts;
  std::barrier all_are_here(kMembers);
  for_each_gpu_member(
      kMembers,
      [&](Communicator& communicator) {
        all_reduce(communicator);
        all_are_here.arrive_and_wait();
        before_second(communicator);
        texts.add(message_of(code, [&] { all_reduce(communicator); }));
        texts.add(message_of(code, [&] { communicator.barrier(); }));
        ASSERT_TRUE(communicator.failure().has_value());
        texts.add(communicator.failure()->what());
        all_are_here.arrive_and_wait();
        if (communicator.rank() == 1) in_the_end();
      },
      options);
  return texts.only();
}

TEST_F(NcclFaults, InConnectingAreTheErrorOfAllAndLeaveTheHostAlone) {
  const auto hosts = make_thread_communicators(kMembers);
  inject(1, NcclFault::kInitFails);
  const std::string text = message_of(ErrorCode::kUnavailable, [&] {
    static_cast<void>(nccl::make_communicators(hosts, first_gpus(kMembers)));
  });
  EXPECT_THAT(text, AllOf(HasSubstr("member 1 (worker 0"), HasSubstr("unhandled system error"),
                          HasSubstr("a fault was injected into the meeting")));
  call_for_each(hosts, [](Communicator& host) { EXPECT_NO_THROW(host.barrier()); });
}

TEST_F(NcclFaults, OfAMeetingThatNeverEndsAreNoticedInTime) {
  const auto hosts = make_thread_communicators(kMembers, {.timeout_seconds = 0.5});
  inject(1, NcclFault::kInitNeverEnds);
  const std::string text = message_of(ErrorCode::kUnavailable, [&] {
    static_cast<void>(nccl::make_communicators(hosts, first_gpus(kMembers)));
  });
  EXPECT_THAT(text, HasSubstr("did not come to the end of the members' meeting"));
  call_for_each(hosts, [](Communicator& host) { EXPECT_NO_THROW(host.barrier()); });
}

TEST_F(NcclFaults, ThatNcclReportsEndTheCallsOfAll) {
  const std::string text =
      failure_of_second(ErrorCode::kUnavailable, {.timeout_seconds = 60}, [](Communicator& communicator) {
        if (communicator.rank() == 1) inject(1, NcclFault::kAsyncError);
      });
  EXPECT_THAT(text, AllOf(HasSubstr("remote process exited"), HasSubstr("a fault was injected")));
}

TEST_F(NcclFaults, OfAGpuThatHangsAreNoticedInTime) {
  const std::string text = failure_of_second(ErrorCode::kDeadlineExceeded, {.timeout_seconds = 0.3},
                                             [](Communicator& communicator) {
                                               if (communicator.rank() == 1)
                                                 inject(1, NcclFault::kNeverTakesPart);
                                             });
  EXPECT_THAT(text, AllOf(HasSubstr("all_reduce #1: deadline of 0.3 s passed on the GPUs"),
                          HasSubstr("all members have called it")));
}

TEST_F(NcclFaults, NameWhoseGpuIsBusyElsewhere) {
  static std::atomic<bool> busy;
  busy = true;
  const std::string text = failure_of_second(
      ErrorCode::kDeadlineExceeded, {.timeout_seconds = 0.3},
      [](Communicator& communicator) {
        if (communicator.rank() != 1) return;
        const auto compute = [](void*) {
          while (busy) std::this_thread::yield();
        };
        EXPECT_EQ(
            cudaLaunchHostFunc(cuda::compute_stream(Device(DeviceKind::kCuda, 1)).handle(), compute, nullptr),
            cudaSuccess);
      },
      [] { busy = false; });
  EXPECT_THAT(text, AllOf(HasSubstr("deadline of 0.3 s passed on the GPUs"),
                          HasSubstr("the GPU of member 1 (worker 0, host"),
                          HasSubstr("still computes what was queued before the call")));
}

TEST_F(NcclFaults, AreToldWhereTheResultIsReadAndOnce) {
  Texts texts;
  for_each_gpu_communicator(
      kMembers,
      [&](Communicator& communicator) {
        const Device gpu = Device(DeviceKind::kCuda, communicator.rank());
        const Tensor sum = Tensor::full({1000}, DType::kFloat32, 1).to(gpu);
        communicator.all_reduce(sum, ReduceOp::kSum);
        EXPECT_EQ(sum.to(Device()).span<float>().back(), kMembers);
        if (communicator.rank() == 1) inject(1, NcclFault::kNeverTakesPart);
        communicator.all_reduce(sum, ReduceOp::kSum);
        texts.add(message_of(ErrorCode::kDeadlineExceeded, [&] { static_cast<void>(sum.to(Device())); }));
        EXPECT_NO_THROW(static_cast<void>(sum.to(Device())));
        EXPECT_NO_THROW(synchronize(gpu));
        texts.add(
            message_of(ErrorCode::kDeadlineExceeded, [&] { communicator.all_reduce(sum, ReduceOp::kSum); }));
      },
      {.timeout_seconds = 0.3});
  EXPECT_THAT(texts.only(), HasSubstr("all members have called it"));
}

TEST_F(NcclFaults, AreNotToldToMemoryThatIsGivenBack) {
  Texts texts;
  // Kept beyond its communicator, so that the last owner releases it.
  std::vector<Tensor> kept(kMembers);
  for_each_gpu_communicator(kMembers, [&](Communicator& communicator) {
    kept[static_cast<std::size_t>(communicator.rank())] = communicator.allocate({10}, DType::kFloat32);
  });
  for_each_gpu_communicator(
      kMembers,
      [&](Communicator& communicator) {
        const Device gpu = Device(DeviceKind::kCuda, communicator.rank());
        const Tensor sum = Tensor::full({1000}, DType::kFloat32, 1).to(gpu);
        {
          const Tensor passing = std::exchange(kept[static_cast<std::size_t>(communicator.rank())], Tensor());
          if (communicator.rank() == 1) inject(1, NcclFault::kNeverTakesPart);
          communicator.all_reduce(sum, ReduceOp::kSum);
        }
        texts.add(message_of(ErrorCode::kDeadlineExceeded, [&] { static_cast<void>(sum.to(Device())); }));
      },
      {.timeout_seconds = 0.3});
  EXPECT_THAT(texts.only(), HasSubstr("all members have called it"));
}

TEST_F(NcclFaults, OfAWindowEndTheCommunicatorOnAllMembers) {
  Texts texts;
  for_each_gpu_communicator(kMembers, [&](Communicator& communicator) {
    const Tensor tensor = communicator.allocate({10}, DType::kFloat32);
    if (communicator.rank() == 1) inject(1, NcclFault::kWindowFails);
    const auto again = [&] { static_cast<void>(communicator.allocate({10}, DType::kFloat32)); };
    texts.add(message_of(ErrorCode::kUnavailable, again));
    texts.add(message_of(ErrorCode::kUnavailable, [&] { communicator.all_reduce(tensor, ReduceOp::kSum); }));
  });
  EXPECT_THAT(texts.only(), HasSubstr("a fault was injected into the window"));
}

TEST_F(NcclFaults, AtTheEndOfACommunicatorAreOverBeforeItsMemoryGoes) {
  auto communicators = make_gpu_communicators(kMembers);
  call_for_each(communicators, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    Tensor tensor = communicator.allocate({10}, DType::kFloat32);
    inject(rank, NcclFault::kAsyncError);
    // NCCL fails when it is asked to finalize, since this call is not waited for before.
    const Work work = communicator.all_reduce_async(tensor, ReduceOp::kSum);
    tensor = Tensor();
    communicators[static_cast<std::size_t>(rank)].reset();
  });
}

TEST_F(NcclFaults, EndCallsInFlightAsWell) {
  Texts texts;
  std::barrier all_have_the_first(kMembers);
  for_each_gpu_member(kMembers, [&](Communicator& communicator) {
    all_reduce(communicator);
    all_have_the_first.arrive_and_wait();
    if (communicator.rank() == 0) inject(0, NcclFault::kAsyncError);
    const Tensor sum = Tensor::full({10}, DType::kFloat32, 1);
    std::vector<Work> works;
    texts.add(message_of(ErrorCode::kUnavailable, [&] {
      while (true) works.push_back(communicator.all_reduce_async(sum, ReduceOp::kSum));
    }));
    for (Work& work : works) texts.add(message_of(ErrorCode::kUnavailable, [&] { work.wait(); }));
  });
  EXPECT_THAT(texts.only(), HasSubstr("a fault was injected"));
}

TEST_F(NcclFaults, AbortReleasesThoseWhoWait) {
  Texts texts;
  std::barrier all_have_the_first(kMembers);
  for_each_gpu_member(kMembers, [&](Communicator& communicator) {
    all_reduce(communicator);
    all_have_the_first.arrive_and_wait();
    if (communicator.rank() == 2) return communicator.abort(Aborted("replica 2 failed"));
    texts.add(message_of(ErrorCode::kAborted, [&] { all_reduce(communicator); }));
  });
  EXPECT_EQ(texts.only(), "replica 2 failed");
}

TEST_F(NcclFaults, AMemberThatLeavesByAnExceptionEndsTheCallsOfTheOthers) {
  auto communicators = make_gpu_communicators(kMembers);
  const std::vector<Device> devices = first_gpus(kMembers);
  Texts texts;
  std::barrier all_have_the_first(kMembers);
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < communicators.size(); ++index) {
    threads.emplace_back([&, index] {
      try {
        const std::unique_ptr<Communicator> communicator =
            on_gpu(std::move(communicators[index]), devices[index]);
        Work work = communicator->all_reduce_async(Tensor::full({10}, DType::kFloat32, 1), ReduceOp::kSum);
        work.wait();
        all_have_the_first.arrive_and_wait();
        if (index == 2) throw std::runtime_error("something else went wrong");
        texts.add(message_of(ErrorCode::kAborted, [&] { all_reduce(*communicator); }));
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "something else went wrong");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(texts.only(), HasSubstr("member 2 (worker 0"));
}

TEST_F(NcclFaults, DoNotMakeTheMemberThatEndsWaitForIdleOnes) {
  const NcclWaitsForThreads as_between_processes;
  auto communicators = make_gpu_communicators(kMembers);
  std::promise<void> has_left;
  const std::shared_future<void> left = has_left.get_future().share();
  Texts texts;
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < communicators.size(); ++index) {
    threads.emplace_back([&, index] {
      try {
        const std::unique_ptr<Communicator> communicator = std::move(communicators[index]);
        const Tensor sum = Tensor::full({10}, DType::kFloat32, 1, communicator->device());
        communicator->all_reduce(sum, ReduceOp::kMax);
        EXPECT_EQ(sum.on_host().span<float>().back(), 1);
        communicator->barrier();
        if (index == 2) throw std::runtime_error("something else went wrong");
        left.wait();
        texts.add(message_of(ErrorCode::kAborted, [&] { communicator->all_reduce(sum, ReduceOp::kMax); }));
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "something else went wrong");
        has_left.set_value();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(texts.only(), HasSubstr("member 2 (worker 0"));
}

TEST_F(NcclFaults, AMemberThatEndsBeforeTheOthersIsNotKeptForEver) {
  const NcclWaitsForThreads as_between_processes;
  auto communicators = make_gpu_communicators(kMembers, {.timeout_seconds = 1});
  call_for_each(communicators, [](Communicator& communicator) {
    const Tensor sum = Tensor::full({10}, DType::kFloat32, 1, communicator.device());
    communicator.all_reduce(sum, ReduceOp::kSum);
    EXPECT_EQ(sum.on_host().span<float>().back(), kMembers);
  });
  // One after the other on one thread: the first cannot wait for the last.
  ::testing::internal::CaptureStderr();
  communicators.clear();
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("member 0 (worker 0"), HasSubstr("NCCL has not ended its communicator on cuda:0"),
            HasSubstr("end a communicator on all members")));
}

TEST_F(NcclFaults, OfASplitLeaveNoGroupBehind) {
  const auto count = find_in_stand_in<decltype(nccl_stand_in_communicators)>("nccl_stand_in_communicators");
  const Deadline left_by_others = Deadline::after(20s);
  while (count() > 0 && !left_by_others.expired()) std::this_thread::yield();
  ASSERT_EQ(count(), 0) << "communicators of other tests";
  Texts texts;
  for_each_gpu_communicator(kMembers,
                            [&](Communicator& communicator) {
                              if (communicator.rank() == 1) inject(1, NcclFault::kSplitNeverEnds);
                              texts.add(message_of(ErrorCode::kDeadlineExceeded,
                                                   [&] { static_cast<void>(communicator.split(0)); }));
                            },
                            {.timeout_seconds = 0.3});
  // The other members' deadline passes at the same time.
  EXPECT_THAT(texts.only(),
              AnyOf(HasSubstr("did not come to the end of a split"), HasSubstr("missing: member 1")));
  const Deadline soon = Deadline::after(20s);  // an end may take longer than destructors wait for it
  while (count() > 0 && !soon.expired()) std::this_thread::yield();
  EXPECT_EQ(count(), 0);
}

TEST_F(NcclFaults, OfAGpuAreNoticedThoughCudaBlocksAllThreads) {
  const auto limit =
      reinterpret_cast<void (*)(std::size_t)>(::dlsym(RTLD_DEFAULT, "gpu_stand_in_limit_queues"));
  Texts texts;
  std::barrier all_are_here(kMembers);
  for_each_gpu_communicator(kMembers,
                            [&](Communicator& communicator) {
                              const Tensor sum =
                                  Tensor::full({10}, DType::kFloat32, 1, communicator.device());
                              communicator.all_reduce(sum, ReduceOp::kMax);
                              EXPECT_EQ(sum.on_host().span<float>().back(), 1);
                              all_are_here.arrive_and_wait();
                              limit(100);
                              if (communicator.rank() == 1) inject(1, NcclFault::kNeverTakesPart);
                              texts.add(message_of(ErrorCode::kDeadlineExceeded, [&] {
                                communicator.all_reduce(sum, ReduceOp::kMax);
                                for (int i = 0; i < 200; ++i) sum.fill(i);
                                static_cast<void>(sum.on_host());
                              }));
                              all_are_here.arrive_and_wait();
                              limit(0);
                            },
                            {.timeout_seconds = 1});
  EXPECT_THAT(texts.only(), HasSubstr("all_reduce #1: deadline of 1 s passed on the GPUs"));
}

TEST_F(NcclFaults, AWorkOutlivesItsCommunicator) {
  auto communicators = make_gpu_communicators(kMembers);
  const std::vector<Device> devices = first_gpus(kMembers);
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < communicators.size(); ++index) {
    threads.emplace_back([&, index] {
      const Tensor tensor = Tensor::full({1000}, DType::kFloat32, 1);
      std::unique_ptr<Communicator> communicator = on_gpu(std::move(communicators[index]), devices[index]);
      Work work = communicator->all_reduce_async(tensor, ReduceOp::kSum);
      communicator.reset();
      work.wait();
      EXPECT_EQ(tensor.span<float>().back(), kMembers);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace cohort::testing
