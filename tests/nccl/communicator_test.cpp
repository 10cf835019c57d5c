// The contract that every Communicator fulfils, with members that are GPUs.
#include <cohort/nccl/communicator.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <cohort/base/deadline.h>
#include <cohort/collective/gradient_buckets.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/tensor.h>

#include "communicator_contracts.h"
#include "gpu_members.h"
#include "nccl_faults.h"

namespace cohort::testing {
namespace {

class NcclCommunicators : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > static_cast<int>(cuda::devices().size()))
      GTEST_SKIP() << "needs " << GetParam() << " GPUs";
  }
};

TEST_P(NcclCommunicators, ReduceExactly) { for_each_gpu_member(GetParam(), check_reductions); }
TEST_P(NcclCommunicators, MoveData) { for_each_gpu_member(GetParam(), check_data_movement); }
TEST_P(NcclCommunicators, WorkAtEverySize) { for_each_gpu_member(GetParam(), check_sizes_and_memory); }
TEST_P(NcclCommunicators, PassMessages) { for_each_gpu_member(GetParam(), check_messages); }
TEST_P(NcclCommunicators, KeepManyInFlight) { for_each_gpu_member(GetParam(), check_async); }
TEST_P(NcclCommunicators, ReducePackedTensors) { for_each_gpu_member(GetParam(), check_packed); }
TEST_P(NcclCommunicators, ReduceBucketsWhereTheyAre) {
  for_each_gpu_communicator(GetParam(), [](Communicator& communicator) {
    const Device gpu(DeviceKind::kCuda, communicator.rank());
    const TensorSpec specs[] = {{Shape{3}, DType::kFloat32}, {Shape{5}, DType::kFloat32}};
    GradientBuckets buckets(communicator, specs);
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      EXPECT_EQ(buckets.tensor(i).device(), gpu);
      buckets.tensor(i).fill(static_cast<double>(i + 1));
      buckets.ready(i);
    }
    buckets.wait();
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      EXPECT_THAT(
          buckets.result(i).on_host().span<float>(),
          ::testing::Each(static_cast<float>((i + 1) * static_cast<std::size_t>(communicator.size()))));
    }
  });
}
TEST_P(NcclCommunicators, RefuseWrongArguments) { for_each_gpu_member(GetParam(), check_arguments); }
TEST_P(NcclCommunicators, NameTheOddMember) { for_each_gpu_member(GetParam(), check_mismatch); }
TEST_P(NcclCommunicators, NameTheMissingMember) {
  for_each_gpu_member(GetParam(), check_missing, {.timeout_seconds = 0.5});
}
TEST_P(NcclCommunicators, TakeTensorsOfTheCpuToo) {
  for_each_gpu_communicator(GetParam(), check_arithmetic);
  for_each_gpu_communicator(GetParam(), check_data_movement);
  for_each_gpu_communicator(GetParam(), check_async);
}
TEST_P(NcclCommunicators, AgreeOnWhereTheTensorsAre) {
  for_each_gpu_communicator(GetParam(), check_agreement_on_different_calls);
}
TEST_P(NcclCommunicators, Split) { for_each_gpu_member(GetParam(), check_split); }
TEST_P(NcclCommunicators, HaveGroupsBesideEachOther) {
  for_each_gpu_member(GetParam(), check_groups_in_one_order);
}
TEST_P(NcclCommunicators, KeepErrorsInTheirGroup) {
  for_each_gpu_member(GetParam(), check_errors_stay_in_their_group);
}
TEST_P(NcclCommunicators, NoticeWhoLeavesAGroup) { for_each_gpu_member(GetParam(), check_leaving_a_group); }
TEST_P(NcclCommunicators, AgreeOnPriorities) {
  for_each_gpu_communicator(GetParam(), check_priority_mismatch);
  for_each_gpu_member(GetParam(), check_order_mismatch);
}
TEST_P(NcclCommunicators, HaveDeadlinesForSingleCalls) {
  for_each_gpu_member(GetParam(), check_shorter_deadline);
}

TEST_P(NcclCommunicators, LeaveTheWaitingToTheGpus) {
  std::barrier all_have_returned(GetParam());
  std::atomic<bool> computing = true;
  for_each_gpu_communicator(GetParam(), [&](Communicator& communicator) {
    const Device gpu(DeviceKind::kCuda, communicator.rank());
    const Tensor one = Tensor::full({1000}, DType::kFloat32, 1).to(gpu);
    Tensor all = Tensor::uninitialized({1000}, DType::kFloat32, gpu);
    // Connecting allocates, which would wait for the function below.
    communicator.all_reduce(all, ReduceOp::kSum);
    synchronize(gpu);
    all_have_returned.arrive_and_wait();
    keep_busy(gpu, computing);
    all.copy_from(one);
    communicator.all_reduce(all, ReduceOp::kSum);
    Work work = communicator.all_reduce_async(all, ReduceOp::kSum);
    work.wait();
    EXPECT_FALSE(work.done());
    all_have_returned.arrive_and_wait();
    computing = false;
    EXPECT_EQ(all.to(Device()).span<float>().back(), GetParam() * GetParam());
    EXPECT_TRUE(work.done());
  });
}

TEST_P(NcclCommunicators, SplitWhenTheirCallsHaveEnded) {
  for_each_gpu_communicator(GetParam(), [&](Communicator& communicator) {
    const Tensor sum = Tensor::full({1000}, DType::kFloat32, 1, communicator.device());
    communicator.all_reduce(sum, ReduceOp::kSum);
    {
      const cuda::CurrentDevice current(communicator.device());
      const auto compute = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
      EXPECT_EQ(cudaLaunchHostFunc(cuda::compute_stream(communicator.device()).handle(), compute, nullptr),
                cudaSuccess);
    }
    Work work = communicator.all_reduce_async(sum, ReduceOp::kSum);
    communicator.all_reduce(sum, ReduceOp::kSum);
    const std::unique_ptr<Communicator> group = communicator.split(0);
    group->all_reduce(sum, ReduceOp::kMax);
    work.wait();
    EXPECT_EQ(sum.on_host().span<float>().back(), GetParam() * GetParam() * GetParam());
  });
}

TEST_P(NcclCommunicators, HaveTheirCallsInOneOrderOnAllGpus) {
  for_each_gpu_communicator(GetParam(), [](Communicator& communicator) {
    const std::unique_ptr<Communicator> group = communicator.split(0);
    const Tensor a = Tensor::full({1000}, DType::kFloat32, 1, communicator.device());
    const Tensor b = Tensor::full({1000}, DType::kFloat32, 1, communicator.device());
    std::vector<Work> works;
    for (int i = 0; i < 30; ++i) {
      works.push_back(communicator.all_reduce_async(a, ReduceOp::kMax));
      if (i % 10 == 9) communicator.all_reduce(a, ReduceOp::kMax);
      works.push_back(group->all_reduce_async(b, ReduceOp::kMax));
      if (i % 7 == 6) group->all_reduce(b, ReduceOp::kMax);
    }
    for (Work& work : works) work.wait();
    EXPECT_EQ(a.on_host().span<float>().back(), 1);
    EXPECT_EQ(b.on_host().span<float>().back(), 1);
  });
}

TEST_P(NcclCommunicators, LeaveRoomInTheQueuesOfTheGpu) {
  const auto launches = find_in_stand_in<decltype(nccl_stand_in_launches)>("nccl_stand_in_launches");
  if (launches == nullptr) GTEST_SKIP() << "only the stand-in counts";
  constexpr int kMost = 64;
  for_each_gpu_communicator(GetParam(), [&](Communicator& communicator) {
    const Tensor sum = Tensor::full({10}, DType::kFloat32, 1, communicator.device());
    communicator.all_reduce(sum, ReduceOp::kMax);
    // The launch of that call ends on its stream a moment after its result is there.
    while (launches(communicator.rank()) > 0) std::this_thread::yield();
    std::atomic<bool> busy = true;
    keep_busy(communicator.device(), busy);
    std::vector<Work> works;
    works.reserve(kMost + 20);
    for (int i = 0; i < kMost + 20; ++i) works.push_back(communicator.all_reduce_async(sum, ReduceOp::kMax));
    while (launches(communicator.rank()) < kMost) std::this_thread::yield();
    const Deadline deadline = Deadline::after(std::chrono::milliseconds(50));
    while (!deadline.expired() && launches(communicator.rank()) == kMost) std::this_thread::yield();
    EXPECT_EQ(launches(communicator.rank()), kMost);
    EXPECT_FALSE(works.back().done());
    busy = false;
    for (Work& work : works) work.wait();
    EXPECT_EQ(sum.on_host().span<float>().back(), 1);
  });
}

INSTANTIATE_TEST_SUITE_P(Members, NcclCommunicators, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace cohort::testing
