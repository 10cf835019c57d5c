// Memory of NCCL's that members make together and register: as symmetric windows, or without them where the
// environment says NCCL_WIN_ENABLE=0.
#include <chrono>
#include <thread>

#include <dlfcn.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>

#include "../cuda/calls_counted.h"
#include "gpu_members.h"
#include "nccl_faults.h"
#include "thrown.h"

// Of the stand-in.
extern "C" void gpu_stand_in_fail(int device, cudaError_t error);

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kMembers = 2;

class NcclMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (static_cast<int>(cuda::devices().size()) < kMembers) GTEST_SKIP() << "needs " << kMembers << " GPUs";
  }
};

void expect_sum(Communicator& communicator, const Tensor& tensor) {
  tensor.fill(communicator.rank() + 1);
  communicator.all_reduce(tensor, ReduceOp::kSum);
  EXPECT_THAT(tensor.on_host().span<float>(), Each(3.0F));
}

Tensor made_alone(Communicator& communicator, std::int64_t elements) {
  return Tensor::zeros({elements}, DType::kFloat32, communicator.device());
}

TEST_F(NcclMemory, IsMemoryAsAnyOther) {
  call_for_each(make_gpu_communicators(kMembers), [](Communicator& communicator) {
    const Tensor tensor = communicator.allocate({3, 5}, DType::kFloat32);
    EXPECT_EQ(tensor.device(), Device(DeviceKind::kCuda, communicator.rank()));
    EXPECT_EQ(tensor.shape(), (Shape{3, 5}));
    tensor.fill(2);
    EXPECT_THAT(tensor.rows(1, 3).on_host().span<float>(), Each(2.0F));
    EXPECT_EQ(communicator.allocate({0}, DType::kFloat32).elements(), 0u);
  });
}

TEST_F(NcclMemory, TakesPartInCollectivesRegistered) {
  auto communicators = make_gpu_communicators(kMembers);
  call_for_each(communicators, [](Communicator& communicator) {
    const Tensor tensor = communicator.allocate({1000}, DType::kFloat32);
    expect_sum(communicator, tensor);
    expect_sum(communicator, tensor.rows(10, 500));
    expect_sum(communicator, made_alone(communicator, 10));
  });
  expect_registered(kMembers);
  call_for_each(communicators, [&](Communicator& communicator) {
    communicators[static_cast<std::size_t>(communicator.rank())].reset();
  });
  expect_registered(0);
}

TEST_F(NcclMemory, IsGivenBackWhenTheNextIsMade) {
  const auto communicators = make_gpu_communicators(kMembers);
  for (int i = 0; i < 10; ++i) {
    call_for_each(communicators, [](Communicator& communicator) {
      expect_sum(communicator, communicator.allocate({1000}, DType::kFloat32));
    });
    expect_registered(kMembers);
  }
}

TEST_F(NcclMemory, StaysWithAllAsLongAsOneMemberHasIt) {
  const auto communicators = make_gpu_communicators(kMembers);
  std::vector<Tensor> kept(kMembers);
  const auto make = [&](bool all_keep_it) {
    call_for_each(communicators, [&](Communicator& communicator) {
      const Tensor tensor = communicator.allocate({10}, DType::kFloat32);
      expect_sum(communicator, tensor);
      if (all_keep_it || communicator.rank() == 1)
        kept[static_cast<std::size_t>(communicator.rank())] = tensor;
    });
  };
  make(false);
  make(true);
  expect_registered(2 * kMembers);
  make(false);
  expect_registered(2 * kMembers);
}

TEST_F(NcclMemory, IsGivenBackWhenCallsWithItHaveEnded) {
  call_for_each(make_gpu_communicators(kMembers), [](Communicator& communicator) {
    const Device device = communicator.device();
    Tensor tensor = communicator.allocate({1000}, DType::kFloat32);
    const Tensor kept = made_alone(communicator, 1000);
    tensor.fill(communicator.rank() + 1);
    // The call cannot begin before this has been done.
    const cuda::CurrentDevice current(device);
    ASSERT_EQ(cudaLaunchHostFunc(
                  cuda::compute_stream(device).handle(),
                  [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr),
              cudaSuccess);
    // A Work that is still held does not keep the tensors of a call that has ended.
    const Work work = communicator.all_reduce_async(tensor, kept, ReduceOp::kSum);
    tensor = Tensor();
    static_cast<void>(communicator.allocate({10}, DType::kFloat32));
    EXPECT_THAT(kept.on_host().span<float>(), Each(3.0F));
    communicator.barrier();
    expect_registered(kMembers);
    communicator.barrier();
  });
}

TEST_F(NcclMemory, MayOutliveItsCommunicator) {
  auto communicators = make_gpu_communicators(kMembers);
  std::vector<Tensor> tensors(kMembers);
  call_for_each(communicators, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    tensors[rank] = communicator.allocate({10}, DType::kFloat32);
    communicators[rank].reset();
  });
  expect_registered(0);
  for (const Tensor& tensor : tensors) {
    tensor.fill(4);
    EXPECT_THAT(tensor.on_host().span<float>(), Each(4.0F));
  }
}

TEST_F(NcclMemory, BelongsToOneCommunicatorOnly) {
  call_for_each(make_gpu_communicators(kMembers), [](Communicator& communicator) {
    const Tensor tensor = communicator.allocate({10}, DType::kFloat32);
    const std::unique_ptr<Communicator> group = communicator.split(0);
    expect_sum(*group, tensor);
    expect_sum(*group, group->allocate({10}, DType::kFloat32));
    expect_sum(communicator, tensor);
  });
}

TEST_F(NcclMemory, OfOtherSizesIsRefused) {
  call_for_each(make_gpu_communicators(kMembers), [](Communicator& communicator) {
    const auto ask = [&] {
      static_cast<void>(communicator.allocate({communicator.rank() + 1}, DType::kFloat32));
    };
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, ask), HasSubstr("members disagree"));
  });
}

TEST_F(NcclMemory, WhereOthersHaveOtherMemoryIsRefused) {
  call_for_each(make_gpu_communicators(kMembers), [](Communicator& communicator) {
    const Tensor tensor = communicator.allocate({1000}, DType::kFloat32);
    const Tensor other = communicator.rank() == 0 ? tensor : made_alone(communicator, 1000);
    EXPECT_THAT(
        message_of(ErrorCode::kInvalidArgument, [&] { communicator.all_reduce(other, ReduceOp::kSum); }),
        AllOf(HasSubstr("members disagree"), HasSubstr("layout")));
  });
}

TEST_F(NcclMemory, WhereOthersHaveOtherMemoryIsRefusedByEachCollective) {
  const auto expect_refusal = [](const char* collective, const auto& call) {
    call_for_each(make_gpu_communicators(kMembers), [&](Communicator& communicator) {
      const Tensor whole = communicator.allocate({kMembers * 10}, DType::kFloat32);
      const Tensor other = communicator.rank() == 0 ? whole : made_alone(communicator, kMembers * 10);
      const Tensor block = made_alone(communicator, 10);
      EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { call(communicator, other, block); }),
                  AllOf(HasSubstr("members disagree"), HasSubstr("layout")))
          << collective;
    });
  };
  expect_refusal("all_gather",
                 [](auto& members, auto& whole, auto& block) { members.all_gather(block, whole); });
  expect_refusal("reduce_scatter", [](auto& members, auto& whole, auto& block) {
    members.reduce_scatter(whole, block, ReduceOp::kSum);
  });
  expect_refusal("broadcast", [](auto& members, auto& whole, auto&) { members.broadcast(whole, 0); });
  expect_refusal("reduce",
                 [](auto& members, auto& whole, auto&) { members.reduce(whole, whole, ReduceOp::kSum, 0); });
  expect_refusal("all_to_all", [](auto& members, auto& whole, auto&) {
    members.all_to_all(whole, made_alone(members, kMembers * 10));
  });
}

TEST_F(NcclMemory, MayHoldEachMembersOwnBlock) {
  call_for_each(make_gpu_communicators(kMembers), [](Communicator& communicator) {
    const Tensor whole = communicator.allocate({kMembers * 10}, DType::kFloat32);
    const Tensor own = whole.rows(communicator.rank() * 10, (communicator.rank() + 1) * 10);
    own.fill(4);
    communicator.all_gather(own, whole);
    EXPECT_THAT(whole.on_host().span<float>(), Each(4.0F));
    communicator.reduce_scatter(whole, own, ReduceOp::kSum);
    EXPECT_THAT(own.on_host().span<float>(), Each(4.0F * kMembers));
  });
}

TEST_F(NcclMemory, WhereOthersHaveAnotherPartOfItIsRefused) {
  call_for_each(make_gpu_communicators(kMembers), [](Communicator& communicator) {
    const Tensor tensor = communicator.allocate({1000}, DType::kFloat32);
    const Tensor part = tensor.rows(communicator.rank(), 900 + communicator.rank());
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                           [&] { communicator.all_reduce_async(part, ReduceOp::kSum).wait(); }),
                AllOf(HasSubstr("members disagree"), HasSubstr("layout")));
  });
}

TEST_F(NcclMemory, MembersThatDoNotAskForItAreNamed) {
  const auto communicators = make_gpu_communicators(kMembers, {.timeout_seconds = 0.2});
  EXPECT_THAT(message_of(ErrorCode::kDeadlineExceeded,
                         [&] { static_cast<void>(communicators[0]->allocate({10}, DType::kFloat32)); }),
              HasSubstr("missing: member 1"));
}

TEST_F(NcclMemory, MayBeWhatTensorsHaveReleased) {
  if (call_counter() == nullptr) GTEST_SKIP() << "knows how much memory the stand-in has";
  call_for_each(make_gpu_communicators(kMembers), [](Communicator& communicator) {
    const auto most = static_cast<std::int64_t>(cuda::memory(communicator.device()).total_bytes / 3 * 2);
    static_cast<void>(Tensor::uninitialized({most}, DType::kUInt8, communicator.device()));
    synchronize(communicator.device());
    EXPECT_EQ(communicator.allocate({most}, DType::kUInt8).bytes(), static_cast<std::size_t>(most));
  });
}

TEST_F(NcclMemory, OfAGpuThatFailsIsLetGo) {
  auto* const fail = reinterpret_cast<decltype(&gpu_stand_in_fail)>(dlsym(RTLD_DEFAULT, "gpu_stand_in_fail"));
  if (fail == nullptr) GTEST_SKIP() << "only the stand-in fails on request";
  auto communicators = make_gpu_communicators(kMembers);
  std::vector<Tensor> tensors(kMembers);
  call_for_each(communicators, [&](Communicator& communicator) {
    Tensor& tensor = tensors[static_cast<std::size_t>(communicator.rank())];
    tensor = communicator.allocate({10}, DType::kFloat32);
    expect_sum(communicator, tensor);
  });
  fail(1, cudaErrorIllegalAddress);
  EXPECT_THAT(message_of(ErrorCode::kInternal, [&] { tensors[1].fill(1); }),
              HasSubstr("cudaErrorIllegalAddress"));
  call_for_each(communicators, [&](Communicator& communicator) {
    communicators[static_cast<std::size_t>(communicator.rank())].reset();
  });
  tensors.clear();
  fail(1, cudaSuccess);
  expect_registered(0);
}

std::vector<Tensor> kept_to_the_end;  // NOLINT(cert-err58-cpp): CUDA shuts down before it is destroyed

TEST_F(NcclMemory, MayOutliveCuda) {
  kept_to_the_end.resize(kMembers);
  call_for_each(make_gpu_communicators(kMembers), [](Communicator& communicator) {
    kept_to_the_end[static_cast<std::size_t>(communicator.rank())] =
        communicator.allocate({10}, DType::kFloat32);
  });
}

TEST_F(NcclMemory, OfEveryKindIsOpenToThePeers) {
  const auto communicators = make_gpu_communicators(kMembers);
  for (const Device owner : first_gpus(kMembers)) {
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, owner.index()), cudaSuccess);
    for (const Device peer : first_gpus(kMembers)) {
      if (!cuda::can_access_peer(peer, owner)) continue;
      cudaMemLocation location{};
      location.type = cudaMemLocationTypeDevice;
      location.id = peer.index();
      cudaMemAccessFlags access = cudaMemAccessFlagsProtNone;
      ASSERT_EQ(cudaMemPoolGetAccess(&access, pool, &location), cudaSuccess);
      EXPECT_EQ(access, cudaMemAccessFlagsProtReadWrite) << to_string(owner) << " to " << to_string(peer);
    }
  }
  call_for_each(communicators,
                [](Communicator& communicator) { expect_sum(communicator, made_alone(communicator, 1000)); });
}

}  // namespace
}  // namespace cohort::testing
