// Ranks that do not all see the same GPUs. VISIBLE_GPUS says which rank sees which, before CUDA is asked.
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "mpi_main.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kVisible = std::getenv("VISIBLE_GPUS");

/// As a launcher does it: in the environment of each rank.
void narrow() {
  const int rank = session().rank();
  if (kVisible == "own") setenv("CUDA_VISIBLE_DEVICES", std::to_string(rank).c_str(), 1);
  if (kVisible == "overlapping") setenv("CUDA_VISIBLE_DEVICES", ("0," + std::to_string(rank + 1)).c_str(), 1);
  if (kVisible == "chief" && rank > 0) setenv("CUDA_VISIBLE_DEVICES", "", 1);
}

MultiWorkerMirroredStrategy strategy(const std::vector<Device>& devices = {}) {
  return MultiWorkerMirroredStrategy(session(), {.timeout_seconds = 60}, devices);
}

double sum_of_ones(const Strategy& strategy) {
  const auto ones = strategy.run(
      [](const ReplicaContext& replica) { return Tensor::full({3}, DType::kFloat32, 1, replica.device()); });
  return strategy.reduce(ReduceOp::kSum, ones).row(0).item<double>();
}

class GpuBinding : public ::testing::Test {
 protected:
  void SetUp() override { narrow(); }
};

TEST_F(GpuBinding, GivesAWorkerWhatOnlyItSees) {
  if (kVisible != "own") GTEST_SKIP() << "for ranks that see a GPU each";
  const MultiWorkerMirroredStrategy own = strategy();
  EXPECT_THAT(own.extended().worker_devices(), ElementsAre(Device(DeviceKind::kCuda, 0)));
  EXPECT_EQ(sum_of_ones(own), session().size());
}

TEST_F(GpuBinding, RefusesWhatOverlaps) {
  if (kVisible != "overlapping") GTEST_SKIP() << "for ranks that see different GPUs, and one in common";
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [] { return strategy(); }),
              AllOf(HasSubstr("overlapping sets of GPUs"), HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST_F(GpuBinding, RefusesAWorkerWithoutGpuOnEveryWorker) {
  if (kVisible != "chief") GTEST_SKIP() << "for ranks of which only the first sees GPUs";
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [] { return strategy(); }),
              AllOf(HasSubstr("worker 1 "), HasSubstr("sees no GPU"), HasSubstr("worker 0 ")));
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [] { return strategy({Device(DeviceKind::kCuda, 0)}); }),
              AllOf(HasSubstr("worker 1 "), HasSubstr("cuda:0 does not exist")));
  const Device own(session().is_chief() ? DeviceKind::kCuda : DeviceKind::kCpu, 0);
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { return strategy({own}); }),
              AllOf(HasSubstr("worker 0 "), HasSubstr("cuda:0"), HasSubstr("worker 1 "), HasSubstr("cpu:0")));
  EXPECT_EQ(sum_of_ones(strategy({Device::cpu(0)})), session().size());
}

}  // namespace
}  // namespace cohort::testing
