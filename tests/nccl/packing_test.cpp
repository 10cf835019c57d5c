// Packed all-reduces of GPUs: by NCCL, from memory that it knows, and through the host.
#include <array>

#include <gmock/gmock.h>

#include <cohort/collective/communication_scope.h>
#include <cohort/collective/gradient_buckets.h>
#include <cohort/device/tensor.h>

#include "../cuda/calls_counted.h"
#include "collective/device_communicators.h"
#include "collective/packing/tensor_lists.h"
#include "communicator_contracts.h"
#include "gpu_members.h"

namespace cohort::testing {
namespace {

using ::testing::Each;

using Check = void (*)(Communicator&);

constexpr std::int64_t kElementsOfAHalf = 100;  // of a bucket

int gpus() { return static_cast<int>(cuda::devices().size()); }

/// By NCCL, and through the host.
void on_both_ways(Check check) {
  for_each_gpu_communicator(gpus(), check);
  call_for_each(make_staged_communicators(make_thread_communicators(gpus()), first_gpus(gpus())), check);
}

TEST(GpuPacking, AgreesOnTheCost) { on_both_ways(check_cost); }
TEST(GpuPacking, ReducesBatchesLikeTensorsOneByOne) { on_both_ways(check_batches); }
TEST(GpuPacking, TakesDevicesInTheOrderOfTheList) {
  if (gpus() < 2) GTEST_SKIP() << "needs 2 GPUs";
  const auto check = [](Communicator& communicator) {
    // Its own first, as a replica that has both.
    const Device own = communicator.device();
    check_batches_on_several_devices(communicator,
                                     std::array{own, Device(DeviceKind::kCuda, 1 - own.index())});
  };
  for_each_gpu_communicator(2, check);
  call_for_each(make_staged_communicators(make_thread_communicators(2), first_gpus(2)), check);
}
TEST(GpuPacking, NoticesBatchesThatDiffer) { on_both_ways(check_batch_mismatch); }
TEST(GpuPacking, ReducesBucketsLikeTensorsOneByOne) { on_both_ways(check_buckets); }
TEST(GpuPacking, RefusesWrongAnnouncements) { on_both_ways(check_bucket_arguments); }
TEST(GpuPacking, NamesWhoDescribesOtherGradients) { on_both_ways(check_bucket_mismatch); }
TEST(GpuPacking, SplitsHugeTensors) { on_both_ways(check_huge_tensors); }

TEST(GpuPacking, MovesHugeTensorsWholeByNccl) {
  if (call_counter() == nullptr || gpus() > 1) GTEST_SKIP() << "only the stand-in counts; one GPU is enough";
  const auto launches = [] { return calls_of({"cudaLaunchHostFunc"}); };
  for_each_gpu_communicator(1, [&](Communicator& communicator) {
    constexpr auto kElements = static_cast<std::int64_t>(kLargestCallBytes) + 1;
    const auto expect_launches = [&](DType dtype, std::uint64_t wanted) {
      const Tensor huge = Tensor::full({kElements}, dtype, 1, communicator.device());
      const std::uint64_t before = launches();
      BatchReducer().all_reduce(communicator, {&huge, 1}, ReduceOp::kSum);
      GradientBuckets buckets(communicator, std::vector<TensorSpec>{{huge.shape(), huge.dtype()}});
      buckets.ready(0, huge);
      buckets.wait();
      EXPECT_EQ(launches() - before, wanted) << to_string(dtype);
    };
    expect_launches(DType::kUInt8, 2);
    expect_launches(DType::kInt16, 0);  // through the host
  });
}

TEST(GpuPacking, AllocatesOnceForAListOfBucketsOrPacks) {
  if (call_counter() == nullptr) GTEST_SKIP() << "only the stand-in counts";
  const auto allocations = [] { return calls_of({"cudaMalloc"}); };
  for_each_gpu_communicator(gpus(), [&](Communicator& communicator) {
    const std::vector<TensorSpec> specs(40, {{kElementsOfAHalf}, DType::kFloat32});
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < specs.size(); ++i)
      tensors.push_back(
          Tensor::full(specs[i].shape, DType::kFloat32, static_cast<double>(i), communicator.device()));
    communicator.barrier();
    const std::uint64_t before = allocations();
    communicator.barrier();
    GradientBuckets buckets(communicator, specs, {.bytes_per_bucket = 2 * kElementsOfAHalf * sizeof(float)});
    EXPECT_EQ(buckets.bucket_count(), 20u);
    const CommunicationScope scope(communicator, {.bytes_per_pack = kElementsOfAHalf * sizeof(float)});
    BatchReducer().all_reduce(communicator, tensors, ReduceOp::kSum);
    communicator.barrier();
    EXPECT_EQ(allocations() - before, static_cast<std::uint64_t>(2 * gpus()));
    communicator.barrier();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto sum = static_cast<float>(i * static_cast<std::size_t>(gpus()));
      EXPECT_THAT(tensors[i].on_host().span<float>(), Each(sum));
      buckets.ready(i, tensors[i]);
    }
    buckets.wait();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto sum = static_cast<float>(i * static_cast<std::size_t>(gpus() * gpus()));
      EXPECT_THAT(buckets.result(i).on_host().span<float>(), Each(sum));
    }
  });
}

constexpr int kGradients = 20;
constexpr int kElements = 5;

/// A step of a model whose gradients are elsewhere, and share one bucket.
class Model {
 public:
  explicit Model(Communicator& communicator)
      : buckets_(communicator, std::vector<TensorSpec>(kGradients, {{kElements}, DType::kFloat32}),
                 {.bytes_per_bucket = std::size_t{1} << 20}) {
    for (int i = 0; i < kGradients; ++i)
      gradients_.push_back(Tensor::full({kElements}, DType::kFloat32, i, communicator.device()));
  }

  void take_step() {
    for (std::size_t i = kGradients; i-- > 0;) buckets_.ready(i, gradients_[i]);
    buckets_.wait();
  }
  [[nodiscard]] const GradientBuckets& buckets() const { return buckets_; }

 private:
  GradientBuckets buckets_;
  std::vector<Tensor> gradients_;
};

TEST(GpuPacking, CopiesTheGradientsOfABucketTogether) {
  if (call_counter() == nullptr) GTEST_SKIP() << "only the stand-in counts";
  const auto copies = [] { return calls_of({"cudaLaunchKernel", "cudaMemcpyAsync"}); };
  for_each_gpu_communicator(gpus(), [&](Communicator& communicator) {
    Model model(communicator);
    ASSERT_EQ(model.buckets().bucket_count(), 1u);
    communicator.barrier();
    const std::uint64_t before = copies();
    communicator.barrier();
    model.take_step();
    communicator.barrier();
    EXPECT_EQ(copies() - before, static_cast<std::uint64_t>(gpus()));
    communicator.barrier();
    for (int i = 0; i < kGradients; ++i)
      EXPECT_THAT(model.buckets().result(static_cast<std::size_t>(i)).on_host().span<float>(),
                  Each(static_cast<float>(i * gpus())));
  });
}

TEST(GpuPacking, AsksForNoMoreAfterTheFirstStep) {
  if (call_counter() == nullptr) GTEST_SKIP() << "only the stand-in counts";
  for_each_gpu_communicator(gpus(), [&](Communicator& communicator) {
    Model model(communicator);
    BatchReducer reducer;
    const std::vector<Tensor> batch(3, Tensor::zeros({kElements}, DType::kFloat32, communicator.device()));
    const auto step = [&] {
      model.take_step();
      reducer.all_reduce(communicator, batch, ReduceOp::kSum);
      // Otherwise it depends on the threads how many calls are in flight.
      synchronize(communicator.device());
      communicator.barrier();
    };
    have_many_in_flight(communicator);
    for (int i = 0; i < 3; ++i) step();
    const std::uint64_t before = calls_of(kDearCalls);
    communicator.barrier();
    for (int i = 0; i < 3; ++i) step();
    EXPECT_EQ(calls_of(kDearCalls), before);
    communicator.barrier();
  });
}

}  // namespace
}  // namespace cohort::testing
