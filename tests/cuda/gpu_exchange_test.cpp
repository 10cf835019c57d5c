// Tensors of GPUs that other libraries make or use, on streams of their own, and asynchronous copies. A
// missing order shows as a late or an overwritten value.
#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/cuda/copy.h>
#include <cohort/cuda/dlpack.h>
#include <cohort/device/dlpack.h>
#include <cohort/device/tensor.h>

namespace cohort::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Device kGpu(DeviceKind::kCuda, 0);

Tensor full(float value) { return Tensor::full({100}, DType::kFloat32, value, kGpu); }

/// What another library reads from a tensor that it was given, on its stream.
Tensor read_by(const Stream& stream, const DLManagedTensor& managed) {
  Tensor result = pinned({100}, DType::kFloat32);
  const Tensor view = Tensor::wrap(
      std::make_shared<const Buffer>(static_cast<std::byte*>(managed.dl_tensor.data), 400, kGpu, nullptr), 0,
      {100}, DType::kFloat32);
  copy_async(view, result, stream);
  return result;
}

bool all_are(const Tensor& tensor, float value) {
  return bitwise_equal(tensor, Tensor::full(tensor.shape(), tensor.dtype(), value));
}

TEST(GpuDlpack, GivesATensorThatIsReady) {
  const Stream other(kGpu);
  const Tensor tensor = full(2);
  DLManagedTensor* const managed = cohort::to_dlpack(tensor);
  EXPECT_EQ(managed->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(managed->dl_tensor.device.device_id, 0);
  const Tensor seen = read_by(other, *managed);
  other.synchronize();
  EXPECT_TRUE(all_are(seen, 2));
  managed->deleter(managed);
}

TEST(GpuDlpack, OrdersTheConsumersStream) {
  const Stream consumer(kGpu);
  const Tensor tensor = full(3);
  DLManagedTensor* const managed = to_dlpack(tensor, consumer.handle());
  const Tensor seen = read_by(consumer, *managed);
  managed->deleter(managed);
  tensor.fill(4);  // after the consumer has read it, for it was released
  consumer.synchronize();
  EXPECT_TRUE(all_are(seen, 3));
}

TEST(GpuDlpack, OrdersTheProducersStream) {
  const Stream producer(kGpu);
  const Tensor source = pinned({100}, DType::kFloat32);
  source.fill(5);
  const Tensor memory = full(0);
  compute_stream(kGpu).synchronize();
  copy_async(source, memory, producer);
  Tensor taken = from_dlpack(cohort::detail::export_dlpack(memory, [] {}), producer.handle());
  const Tensor sum = taken.clone();
  taken = Tensor();
  EXPECT_TRUE(all_are(sum, 5));  // not what was there before the producer
}

TEST(GpuDlpack, RefusesStreamsOfTheCpu) {
  EXPECT_THAT([] { static_cast<void>(to_dlpack(Tensor::zeros({1}, DType::kInt8), nullptr)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("has no streams")));
  EXPECT_THAT(
      [] { static_cast<void>(from_dlpack(cohort::to_dlpack(Tensor::zeros({1}, DType::kInt8)), nullptr)); },
      ThrowsMessage<InvalidArgument>(HasSubstr("has no streams")));
}

TEST(GpuCopies, AreQueued) {
  const Stream stream(kGpu);
  const Event done(kGpu);
  const Tensor there = full(0);
  const Tensor source = pinned({100}, DType::kFloat32);
  const Tensor back = pinned({100}, DType::kFloat32);
  source.fill(7);
  order(compute_stream(kGpu), stream);
  copy_async(source, there, stream);
  copy_async(there, back, stream);
  done.record(stream);
  done.synchronize();
  EXPECT_TRUE(all_are(back, 7));
}

TEST(GpuCopies, NeedAGpuAndTensorsThatFit) {
  const Tensor here = Tensor::zeros({2}, DType::kInt8);
  EXPECT_THROW(copy_async(here, here, compute_stream(kGpu)), InvalidArgument);
  EXPECT_THROW(copy_async(here, full(0), compute_stream(kGpu)), InvalidArgument);
}

}  // namespace
}  // namespace cohort::cuda
