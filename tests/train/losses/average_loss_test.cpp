// A replica's part of the mean loss.
#include <cohort/train/losses/average_loss.h>

#include <gmock/gmock.h>

#include "../../strategy/strategies.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(AverageLoss, DividesByTheGlobalBatch) {
  const Tensor losses = Tensor::from({1.0F, 2.0F, 6.0F});
  EXPECT_EQ(compute_average_loss(losses).item<float>(), 3);
  EXPECT_EQ(compute_average_loss(losses, {.global_batch_size = 18}).item<float>(), 0.5F);
  EXPECT_EQ(compute_average_loss(losses.cast(DType::kFloat64)).dtype(), DType::kFloat64);
}

TEST(AverageLoss, WeighsExamples) {
  const Tensor losses = Tensor::from({1.0F, 2.0F});
  EXPECT_EQ(compute_average_loss(losses, {.sample_weight = Tensor::from({4.0F, 1.0F})}).item<float>(), 3);
  EXPECT_EQ(compute_average_loss(losses, {.sample_weight = Tensor::scalar(2)}).item<float>(), 3);
  EXPECT_THAT(
      [&] {
        return compute_average_loss(losses, {.sample_weight = Tensor::from({1.0F, 1.0F, 1.0F})});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("float32[2] has the weights float32[3]")));
}

TEST(AverageLoss, WeighsRowsOfLosses) {
  const Tensor losses = Tensor::from({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).reshape({2, 3});
  const Tensor weights = Tensor::from({10.0F, 1.0F});
  for (const Tensor& each : {weights, weights.reshape({2, 1})}) {
    const AverageLossOptions options{.sample_weight = each, .global_batch_size = 5};
    EXPECT_EQ(compute_average_loss(losses, options).item<float>(), 15) << describe(each);
  }
  EXPECT_EQ(
      compute_average_loss(losses.reshape({6}), {.sample_weight = losses.reshape({6, 1})}).item<float>(),
      91.0F / 6);
  EXPECT_THAT(
      [&] {
        return compute_average_loss(losses, {.sample_weight = Tensor::from({1.0F, 1.0F, 1.0F})});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("float32[2, 3] has the weights float32[3]")));
}

// At the end of the data some replicas have no examples.
TEST(AverageLoss, OfNoExamplesIsZero) {
  const Tensor none = Tensor::zeros({0}, DType::kFloat32);
  EXPECT_EQ(compute_average_loss(none, {.global_batch_size = 4}).item<float>(), 0);
  EXPECT_EQ(compute_average_loss(none).item<float>(), 0);
  EXPECT_EQ(compute_average_loss(none, {.sample_weight = none}).item<float>(), 0);
  EXPECT_EQ(compute_average_loss(Tensor::from({3.0F}), {.global_batch_size = 0}).item<float>(), 0);
  EXPECT_THAT([&] { return compute_average_loss(none, {.global_batch_size = -1}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("global_batch_size is -1")));
}

TEST(AverageLoss, RefusesIntegers) {
  EXPECT_THAT(
      [] {
        return compute_average_loss(Tensor::from({1, 2}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("int32[2]")));
}

class AverageLossOfReplicas : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(AverageLossOfReplicas);

TEST_P(AverageLossOfReplicas, SumsUpToTheMean) {
  const auto parts = strategy_.run([](ReplicaContext& replica) {
    return compute_average_loss(Tensor::full({2}, DType::kFloat64, replica.replica_id_in_sync_group() + 1));
  });
  EXPECT_DOUBLE_EQ(strategy_.reduce(ReduceOp::kSum, parts).item<double>(),
                   sum_to(replicas()) * 1.0 / replicas());
}

TEST_P(AverageLossOfReplicas, IsComputedByReplicasUnlessTheBatchIsKnown) {
  const auto scope = strategy_.scope();
  EXPECT_THAT([] { return compute_average_loss(Tensor::from({1.0F})); },
              ThrowsMessage<WrongContext>(HasSubstr("run()")));
  EXPECT_EQ(compute_average_loss(Tensor::from({1.0F}), {.global_batch_size = 4}).item<float>(), 0.25F);
}

TEST_P(AverageLossOfReplicas, SharesOutWhatDoesNotDependOnExamples) {
  const auto parts = strategy_.run([] { return scale_regularization_loss(Tensor::from({3.0, 5.0})); });
  EXPECT_DOUBLE_EQ(strategy_.reduce(ReduceOp::kSum, parts).item<double>(), 8);
  EXPECT_THROW(static_cast<void>(scale_regularization_loss(Tensor::from({1}))), InvalidArgument);
}

TEST_P(AverageLossOfReplicas, SharesOutNothingOutsideOfReplicas) {
  const auto scope = strategy_.scope();
  EXPECT_THAT(
      [] {
        return scale_regularization_loss(Tensor::from({3.0, 5.0}));
      },
      ThrowsMessage<WrongContext>(HasSubstr("inside the function given to run()")));
}

}  // namespace
}  // namespace cohort::testing
