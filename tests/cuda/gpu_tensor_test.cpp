// Tensors on GPUs: where they are, what is done to them there, and in which order.
#include <gmock/gmock.h>

#include <cuda_runtime_api.h>

#include <cohort/base/error.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/tensor.h>
#include <cohort/device/tensor_ops.h>

#include "calls_counted.h"
#include "device/device_runtime.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using testing::call_counter;
using testing::calls_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Device kGpu(DeviceKind::kCuda, 0);

std::vector<float> floats(const Tensor& tensor) {
  const Tensor readable = tensor.on_host();
  const auto values = readable.span<float>();
  return {values.begin(), values.end()};
}

Tensor numbers(std::initializer_list<float> values, Device device = kGpu) {
  return Tensor::from(values).to(device);
}

/// 0, 1, 2, ..., longer than what staging takes at once.
Tensor counting(std::int64_t elements) {
  Tensor tensor = Tensor::uninitialized({elements}, DType::kInt32);
  std::int32_t next = 0;
  for (std::int32_t& value : tensor.span<std::int32_t>()) value = next++;
  return tensor;
}

TEST(GpuTensor, GoesToEveryGpuAndBack) {
  for (const Device device : gpu_devices()) {
    const Tensor there = numbers({1, 2, 3}, device);
    EXPECT_EQ(there.device(), device);
    EXPECT_THAT(floats(there), ElementsAre(1, 2, 3));
  }
}

TEST(GpuTensor, GoesFromGpuToGpu) {
  const Tensor source = numbers({4, 5});
  const Tensor target = Tensor::zeros({2}, DType::kFloat32, gpu_devices().back());
  target.copy_from(source);
  source.fill(0);  // after the copy has read it
  EXPECT_THAT(floats(target), ElementsAre(4, 5));
  EXPECT_THAT(floats(source), ElementsAre(0, 0));
}

TEST(GpuTensor, IsReadInPlaceByAGpuThatCopiesItOften) {
  if (call_counter() == nullptr || gpu_devices().size() < 2) GTEST_SKIP() << "two GPUs of the stand-in";
  const Tensor source = numbers({4, 5});
  static_cast<void>(source.to(gpu_devices().back()));
  const std::uint64_t before = calls_of({"cudaMemPoolSetAccess"});
  static_cast<void>(source.to(gpu_devices().back()));
  EXPECT_EQ(before, 1U);
  EXPECT_EQ(calls_of({"cudaMemPoolSetAccess"}), before);
}

TEST(GpuTensor, LeavesItsMemoryToTheNext) {
  constexpr std::int64_t kBytes = std::int64_t{4} << 20;
  for (const Device device : gpu_devices()) {
    const cuda::CurrentDevice current(device);
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, device.index()), cudaSuccess);
    static_cast<void>(Tensor::zeros({kBytes}, DType::kInt8, device));
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // as other libraries do in each step
    std::uint64_t reserved = 0;
    ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved), cudaSuccess);
    EXPECT_GE(reserved, static_cast<std::uint64_t>(kBytes));
  }
}

TEST(GpuTensor, TakesItsRowsFromAnotherGpuInOneCall) {
  if (gpu_devices().size() < 2) GTEST_SKIP() << "needs two GPUs";
  const Tensor here = counting(12).reshape({3, 4});
  const Tensor parts[] = {here.to(kGpu), here.to(gpu_devices().back())};
  const Tensor wanted[] = {here, here};
  const auto copies = [] { return calls_of({"cudaMemcpyPeerAsync", "cudaMemcpy3DPeerAsync"}); };
  const std::uint64_t before = call_counter() == nullptr ? 0 : copies();
  EXPECT_TRUE(bitwise_equal(concatenate(parts, 1), concatenate(wanted, 1)));
  if (call_counter() != nullptr) {
    EXPECT_EQ(copies() - before, 1u);
  }
}

TEST(GpuTensor, HasRowsThatBeginFurtherApartThanCudaTakesThem) {
  constexpr std::size_t kPitch = (std::size_t{1} << 31) + 64;
  constexpr std::size_t kWidth = 16;
  if (cuda::memory(kGpu).free_bytes < 3 * kPitch) GTEST_SKIP() << "needs more memory";
  const Tensor huge = Tensor::uninitialized({2, kPitch}, DType::kUInt8, kGpu);
  const Tensor here = Tensor::from({std::int32_t{1}, 2, 3, 4, 5, 6, 7, 8}).reshape({2, 4});
  for (const Device device : {Device(), kGpu, gpu_devices().back()}) {
    const Tensor there = here.to(device);
    const Tensor back = Tensor::zeros({2, 4}, DType::kInt32, device);
    copy_blocks({huge.data(), kGpu, kPitch, there.data(), device, kWidth, kWidth, 2});
    copy_blocks({huge.data() + kPitch / 2, kGpu, kPitch, huge.data(), kGpu, kPitch, kWidth, 2});
    copy_blocks({back.data(), device, kWidth, huge.data() + kPitch / 2, kGpu, kPitch, kWidth, 2});
    EXPECT_TRUE(bitwise_equal(back.on_host(), here)) << to_string(device);
  }
}

TEST(GpuTensor, TravelsInPiecesWhenItIsLarge) {
  const Tensor source = counting(5'000'000);
  const Tensor there = source.to(kGpu);
  EXPECT_TRUE(bitwise_equal(there, source));
}

TEST(GpuTensor, IsWhatTheHostHeldWhenItWasCopied) {
  Tensor source = counting(1000);
  const Tensor there = source.to(kGpu);
  const Tensor expected = source.clone();
  source.fill(-1);
  EXPECT_TRUE(bitwise_equal(there, expected));
}

TEST(GpuTensor, IsFilledInEveryDtype) {
  for (const DType dtype : kAllDTypes) {
    EXPECT_TRUE(bitwise_equal(Tensor::full({7}, dtype, 1, kGpu), Tensor::full({7}, dtype, 1)))
        << to_string(dtype);
    EXPECT_TRUE(bitwise_equal(Tensor::zeros({7}, dtype, kGpu), Tensor::zeros({7}, dtype)))
        << to_string(dtype);
  }
}

TEST(GpuTensor, IsCastAsOnTheHost) {
  const Tensor source = Tensor::from({0.0F, 1.0F, 2.5F, 100.125F, 3.0e-5F});
  for (const DType from : kAllDTypes) {
    for (const DType to : kAllDTypes) {
      const Tensor here = source.cast(from);
      EXPECT_TRUE(bitwise_equal(here.to(kGpu).cast(to), here.cast(to))) << to_string(from) << to_string(to);
    }
  }
}

TEST(GpuTensor, IsRefusedWhereTheHostWouldReadIt) {
  const Tensor there = numbers({1});
  const auto refused = ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("cuda:0"), HasSubstr("to(cpu)")));
  EXPECT_THAT([&] { static_cast<void>(there.span<float>()); }, refused);
  EXPECT_THAT([&] { static_cast<void>(there.item<float>()); }, refused);
}

TEST(GpuTensor, HasViewsAndParts) {
  const Tensor there = counting(12).to(kGpu).reshape({3, 4});
  EXPECT_TRUE(bitwise_equal(there.row(1), counting(12).rows(4, 8)));
  const Tensor halves[] = {there, there};
  const Tensor here[] = {there.on_host(), there.on_host()};
  for (const int axis : {0, 1})
    EXPECT_TRUE(bitwise_equal(concatenate(halves, axis), concatenate(here, axis)));
  EXPECT_TRUE(bitwise_equal(stack_tensors(halves), stack_tensors(here)));
}

TEST(GpuTensor, CopiesOverlappingViewsOfItself) {
  const Tensor there = counting(6).to(kGpu);
  there.rows(1, 6).copy_from(there.rows(0, 5));
  const Tensor here = counting(6);
  here.rows(1, 6).copy_from(here.rows(0, 5));
  EXPECT_TRUE(bitwise_equal(there, here));
}

TEST(GpuTensor, IsPackedWithOthers) {
  std::vector<Tensor> tensors;
  for (std::int64_t i = 0; i < 150; ++i) tensors.push_back(counting(i % 5).to(kGpu));
  std::vector<Tensor> copies;
  copies.reserve(tensors.size());
  for (const Tensor& tensor : tensors) copies.push_back(Tensor::zeros(tensor.shape(), tensor.dtype(), kGpu));
  copy_each(tensors, copies);
  for (std::size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(bitwise_equal(copies[i], tensors[i])) << i;
}

TEST(GpuTensor, SaysWhenMemoryIsShort) {
  EXPECT_THAT([] { static_cast<void>(Tensor::zeros({std::int64_t{1} << 40}, DType::kInt8, kGpu)); },
              ThrowsMessage<Unavailable>(
                  AllOf(HasSubstr("cudaMallocAsync"), HasSubstr("cuda:0"), HasSubstr("out of memory"))));
}

TEST(GpuTensor, SaysWhenThereIsNoSuchGpu) {
  EXPECT_THAT([] { static_cast<void>(Tensor::zeros({1}, DType::kInt8, Device(DeviceKind::kCuda, 99))); },
              ThrowsMessage<Unavailable>(HasSubstr("cuda:99 does not exist")));
}

}  // namespace
}  // namespace cohort
