// Tensors in memory that NCCL knows.
#include <cohort/nccl/memory.h>

#include <dlfcn.h>

#include <chrono>
#include <optional>
#include <thread>

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/device_runtime.h>
#include <cohort/nccl/library.h>

#include "../stand_in/nccl_stand_in.h"
#include "gpu_members.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kMembers = 2;

class NcclMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (static_cast<int>(cuda::devices().size()) < kMembers) GTEST_SKIP() << "needs " << kMembers << " GPUs";
  }
};

/// What the stand-in says; `otherwise` where the machine's own library is in use.
int registrations(int otherwise) {
  void* const library = ::dlopen(nccl::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  const auto count = reinterpret_cast<decltype(&nccl_stand_in_registrations)>(
      ::dlsym(library, "nccl_stand_in_registrations"));
  return count == nullptr ? otherwise : count();
}

void expect_sum(Communicator& communicator, const Tensor& tensor) {
  tensor.fill(communicator.rank() + 1);
  communicator.all_reduce(tensor, ReduceOp::kSum);
  EXPECT_THAT(tensor.on_host().span<float>(), Each(3.0F));
}

TEST_F(NcclMemory, IsMemoryAsAnyOther) {
  for (const Device device : cuda::devices()) {
    const Tensor tensor = nccl::allocate({3, 5}, DType::kFloat32, device);
    EXPECT_EQ(tensor.device(), device);
    tensor.fill(2);
    EXPECT_THAT(tensor.rows(1, 3).on_host().span<float>(), Each(2.0F));
    EXPECT_EQ(nccl::allocate({0}, DType::kFloat32, device).elements(), 0u);
  }
}

TEST_F(NcclMemory, GivesItBackWhenTheGpuIsThroughWithIt) {
  const Device device = cuda::devices().front();
  const Tensor kept = Tensor::uninitialized({1000}, DType::kFloat32, device);
  {
    const Tensor tensor = nccl::allocate({1000}, DType::kFloat32, device);
    tensor.fill(4);
    synchronize(device);
    kept.copy_from(tensor);
  }
  EXPECT_THAT(kept.on_host().span<float>(), Each(4.0F));
}

TEST_F(NcclMemory, TakesPartInCollectivesRegistered) {
  const std::vector<Device> devices = first_gpus(kMembers);
  const auto seats = make_gpu_communicators(kMembers);
  std::vector<std::optional<nccl::Registration>> registrations_of(kMembers);
  call_for_each(seats, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const Tensor tensor = nccl::allocate({1000}, DType::kFloat32, devices[rank]);
    registrations_of[rank].emplace(communicator, tensor);
    expect_sum(communicator, tensor);
    expect_sum(communicator, tensor.rows(10, 500));
  });
  EXPECT_EQ(registrations(kMembers), kMembers);
  registrations_of.clear();
  EXPECT_EQ(registrations(0), 0);
  call_for_each(seats, [&](Communicator& communicator) {
    expect_sum(communicator, Tensor::uninitialized({10}, DType::kFloat32,
                                                   devices[static_cast<std::size_t>(communicator.rank())]));
  });
}

TEST_F(NcclMemory, IsDeregisteredWhenCallsWithItHaveEnded) {
  const std::vector<Device> devices = first_gpus(kMembers);
  call_for_each(make_gpu_communicators(kMembers), [&](Communicator& communicator) {
    const Tensor tensor =
        nccl::allocate({1000}, DType::kFloat32, devices[static_cast<std::size_t>(communicator.rank())]);
    tensor.fill(communicator.rank() + 1);
    std::optional<nccl::Registration> registration(std::in_place, communicator, tensor);
    // The call cannot begin before this has been done.
    const cuda::CurrentDevice current(tensor.device());
    ASSERT_EQ(cudaLaunchHostFunc(
                  cuda::compute_stream(tensor.device()).handle(),
                  [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr),
              cudaSuccess);
    Work work = communicator.all_reduce_async(tensor, ReduceOp::kSum);
    registration.reset();
    EXPECT_TRUE(work.done());
    work.wait();
    EXPECT_THAT(tensor.on_host().span<float>(), Each(3.0F));
  });
  EXPECT_EQ(registrations(0), 0);
}

TEST_F(NcclMemory, MayOutliveItsCommunicator) {
  const std::vector<Device> devices = first_gpus(kMembers);
  auto seats = make_gpu_communicators(kMembers);
  const Tensor tensor = nccl::allocate({10}, DType::kFloat32, devices[0]);
  const nccl::Registration registration(*seats[0], tensor);
  call_for_each(seats, [&](Communicator& communicator) {
    seats[static_cast<std::size_t>(communicator.rank())].reset();
  });
  EXPECT_EQ(registrations(0), 0);
}

TEST_F(NcclMemory, IsRegisteredWhereItBelongsOnly) {
  const std::vector<Device> devices = first_gpus(kMembers);
  const auto seats = make_gpu_communicators(kMembers);
  const auto hosts = make_thread_communicators(1);
  const Tensor tensor = nccl::allocate({10}, DType::kFloat32, devices[0]);
  EXPECT_THAT(
      message_of(ErrorCode::kInvalidArgument, [&] { const nccl::Registration wrong(*hosts[0], tensor); }),
      HasSubstr("only with one of NCCL's"));
  EXPECT_THAT(
      message_of(ErrorCode::kInvalidArgument, [&] { const nccl::Registration wrong(*seats[1], tensor); }),
      HasSubstr("this member of the communicator has cuda:1"));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [] { static_cast<void>(nccl::allocate({1}, DType::kInt8, Device())); }),
              HasSubstr("that of GPUs"));
}

}  // namespace
}  // namespace cohort::testing
