// The losses of a replica as its part of the loss of the global batch. Several workers are in
// worker_contracts.h.
#include <cohort/train/losses/loss_reduction.h>

#include <array>
#include <cmath>

#include <gmock/gmock.h>

#include "../../strategy/strategies.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

double reduced(LossReduction reduction, const std::optional<Tensor>& weights,
               const std::optional<Tensor>& mask) {
  const Tensor losses = Tensor::from({1.0F, 2.0F, 6.0F});
  return reduce_losses(losses, {.reduction = reduction, .sample_weight = weights, .mask = mask})
      .item<double>();
}

TEST(LossReduction, DividesByWhatCounts) {
  const Tensor weights = Tensor::from({2.0F, 0.0F, 1.0F});
  const Tensor mask = Tensor::from(std::array{true, true, false});
  EXPECT_EQ(reduced(LossReduction::kSumOverBatchSize, {}, {}), 3);
  EXPECT_EQ(reduced(LossReduction::kSumOverBatchSize, {}, mask), 1.5);
  EXPECT_NEAR(reduced(LossReduction::kSumOverBatchSize, weights, {}), 8.0 / 3, 1e-6);
  EXPECT_EQ(reduced(LossReduction::kSumOverBatchSize, weights, mask), 1);
  EXPECT_NEAR(reduced(LossReduction::kMeanWithSampleWeight, weights, {}), 8.0 / 3, 1e-6);
  EXPECT_EQ(reduced(LossReduction::kMeanWithSampleWeight, weights, mask), 1);
  EXPECT_EQ(reduced(LossReduction::kSum, weights, mask), 2);
  EXPECT_EQ(reduced(LossReduction::kMeanWithSampleWeight, Tensor::scalar(0.0), {}), 0);
}

TEST(LossReduction, KeepsTheLossesOfExamples) {
  const Tensor losses = Tensor::from({1.0, 2.0, 3.0, std::nan("")}).reshape({2, 2});
  const Tensor mask = Tensor::from({1, 1, 1, 0}).reshape({2, 2});
  const Tensor kept = reduce_losses(
      losses, {.reduction = LossReduction::kNone, .sample_weight = Tensor::from({1.0, 10.0}), .mask = mask});
  EXPECT_EQ(kept.shape(), losses.shape());
  EXPECT_THAT(numbers(kept), ElementsAre(1, 2, 30, 0));
}

TEST(LossReduction, SaysWhatDoesNotFit) {
  const Tensor losses = Tensor::from({1.0F, 2.0F});
  EXPECT_THAT(
      [&] {
        return reduce_losses(losses, {.sample_weight = Tensor::from({1.0, 1.0, 1.0})});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("has the weights float64[3]")));
  EXPECT_THAT(
      [&] {
        return reduce_losses(losses, {.mask = Tensor::from({1, 0, 0})});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("the mask int32[3]")));
  EXPECT_THAT([] { return reduce_losses(Tensor::from({1})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("must be floating-point")));
}

}  // namespace
}  // namespace cohort::testing
