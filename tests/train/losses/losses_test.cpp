// Losses of examples and their gradients. The values of the original are replayed by tests/conformance.
#include <cmath>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/train/losses/classification_losses.h>
#include <cohort/train/losses/regression_losses.h>

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<Loss> losses_of_elements() {
  using namespace losses;
  return {mean_squared_error(),
          mean_absolute_error(),
          mean_squared_logarithmic_error(),
          log_cosh(),
          huber(0.25),
          poisson(),
          cosine_similarity(),
          binary_crossentropy(),
          binary_crossentropy({.label_smoothing = 0.2}),
          binary_crossentropy({.from_logits = true, .label_smoothing = 0.2}),
          binary_focal_crossentropy({.label_smoothing = 0.1, .alpha = 0.3}),
          binary_focal_crossentropy({.from_logits = true, .gamma = 1.5}),
          hinge(),
          squared_hinge(),
          categorical_crossentropy(),
          categorical_crossentropy({.label_smoothing = 0.2}),
          categorical_crossentropy({.from_logits = true, .label_smoothing = 0.1}),
          categorical_focal_crossentropy(),
          categorical_focal_crossentropy({.from_logits = true, .gamma = 1.5, .alpha = 0.5}),
          kl_divergence(),
          categorical_hinge()};
}

// More columns than are added up side by side, none of them at a kink of a loss.
constexpr std::int64_t kRows = 3;
constexpr std::int64_t kColumns = 11;

Tensor predictions() {
  std::vector<double> values;
  for (int i = 0; i < kRows * kColumns; ++i) values.push_back(0.06 + 0.027 * ((i * 7) % 33));
  return Tensor::from(values, {kRows, kColumns});
}

Tensor one_hot_labels() {
  const Tensor labels = Tensor::zeros({kRows, kColumns}, DType::kFloat64);
  for (std::size_t row = 0; row < kRows; ++row) labels.span<double>()[row * kColumns + 3 * row + 1] = 1;
  return labels;
}

double sum_of_losses(const Loss& loss, const Tensor& labels, const Tensor& predictions) {
  double sum = 0;
  for (const double each : loss(labels, predictions).span<double>()) sum += each;
  return sum;
}

void expect_gradient(const Loss& loss, const Tensor& labels) {
  const Tensor at = predictions();
  const Tensor gradients = loss.gradients(labels, at);
  ASSERT_EQ(gradients.shape(), at.shape());
  constexpr double kStep = 1e-6;
  for (std::size_t i = 0; i < at.elements(); ++i) {
    const double value = at.span<double>()[i];
    at.span<double>()[i] = value + kStep;
    const double above = sum_of_losses(loss, labels, at);
    at.span<double>()[i] = value - kStep;
    const double below = sum_of_losses(loss, labels, at);
    at.span<double>()[i] = value;
    const double slope = (above - below) / (2 * kStep);
    EXPECT_NEAR(gradients.span<double>()[i], slope, 1e-6 * std::max(1.0, std::abs(slope)))
        << loss.name() << ", element " << i;
  }
}

TEST(Losses, GradientsAreThoseOfTheValues) {
  for (const Loss& loss : losses_of_elements()) expect_gradient(loss, one_hot_labels());
  // A label of 0 makes so large a loss that no difference of it is exact.
  expect_gradient(losses::mean_absolute_percentage_error(),
                  Tensor::full({kRows, kColumns}, DType::kFloat64, 0.301));
  const Tensor classes = Tensor::from({1, 4, 7});
  for (const bool logits : {false, true}) {
    expect_gradient(losses::sparse_categorical_crossentropy({.from_logits = logits}), classes);
    expect_gradient(losses::sparse_categorical_crossentropy({.from_logits = logits, .ignore_class = 4}),
                    classes);
  }
}

TEST(Losses, HaveTheSameValuesInSinglePrecision) {
  for (const Loss& loss : losses_of_elements()) {
    const Tensor exact = loss(one_hot_labels(), predictions());
    const Tensor rounded = loss(one_hot_labels().cast(DType::kFloat32), predictions().cast(DType::kFloat32));
    ASSERT_EQ(rounded.dtype(), DType::kFloat32);
    for (std::size_t row = 0; row < kRows; ++row) {
      const double value = exact.span<double>()[row];
      EXPECT_NEAR(rounded.span<float>()[row], value, 1e-5 * std::max(1.0, std::abs(value))) << loss.name();
    }
  }
}

TEST(Losses, ComputeHalvesInSinglePrecision) {
  const Loss loss = losses::mean_squared_error();
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Tensor halves = Tensor::from({1.0F, 2.5F}).reshape({2, 1}).cast(dtype);
    const Tensor labels = Tensor::from({0, 1});
    const Tensor values = loss(labels, halves);
    EXPECT_THAT(std::vector<float>(values.span<float>().begin(), values.span<float>().end()),
                ElementsAre(1.0F, 2.25F));
    const Tensor gradients = loss.gradients(labels, halves);
    EXPECT_EQ(gradients.dtype(), dtype);
    EXPECT_EQ(gradients.cast(DType::kFloat32).span<float>()[1], 3.0F);
  }
}

TEST(Losses, WeighGradientsByRows) {
  const Loss loss = losses::mean_squared_error();
  const Tensor labels = Tensor::from({0.0, 0.0}).reshape({2, 1});
  const Tensor at = Tensor::from({1.0, 1.0}).reshape({2, 1});
  const Tensor weighted = loss.gradients(labels, at, Tensor::from({3.0F, 0.0F}));
  EXPECT_EQ(weighted.span<double>()[0], 6);
  EXPECT_EQ(weighted.span<double>()[1], 0);
  EXPECT_EQ(loss.gradients(labels, at, Tensor::scalar(0.5)).span<double>()[0], 1);
  EXPECT_THAT(
      [&] {
        return loss.gradients(labels, at, Tensor::from({1.0, 1.0, 1.0}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("there are 2 rows and the weights float64[3]")));
}

TEST(Losses, OfLargeLogitsAreFinite) {
  const Tensor logits = Tensor::from({1000.0F, -1000.0F}).reshape({1, 2});
  const Loss sparse = losses::sparse_categorical_crossentropy({.from_logits = true});
  EXPECT_EQ(sparse(Tensor::from({1}), logits).item<float>(), 2000);
  EXPECT_EQ(sparse(Tensor::from({0}), logits).item<float>(), 0);
  const Loss binary = losses::binary_crossentropy({.from_logits = true});
  EXPECT_EQ(binary(Tensor::from({0.0F, 1.0F}).reshape({1, 2}), logits).item<float>(), 1000);
}

TEST(Losses, OfSequencesHaveALossForEachStep) {
  const Tensor logits = Tensor::zeros({2, 3, 4}, DType::kFloat32);
  const Tensor labels = Tensor::zeros({2, 3}, DType::kInt64);
  const Loss loss = losses::sparse_categorical_crossentropy({.from_logits = true});
  EXPECT_EQ(loss(labels, logits).shape(), (Shape{2, 3}));
}

TEST(Losses, SayWhatDoesNotFit) {
  const Loss squared = losses::mean_squared_error();
  EXPECT_THAT(
      [&] {
        return squared(Tensor::from({1.0F, 2.0F}), Tensor::from({1.0F, 2.0F, 3.0F}));
      },
      ThrowsMessage<InvalidArgument>(
          HasSubstr("mean_squared_error: the labels are float32[2] and the predictions float32[3]")));
  EXPECT_THAT([&] { return squared(Tensor::from({1}), Tensor::from({1})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("give floating-point numbers")));
  const Loss sparse = losses::sparse_categorical_crossentropy();
  for (const int label : {-1, 3}) {
    EXPECT_THAT(
        [&] {
          return sparse(Tensor::from({label}), Tensor::full({1, 3}, DType::kFloat32, 0.3));
        },
        ThrowsMessage<InvalidArgument>(
            HasSubstr(fmt::format("a label is {}, but there are 3 classes", label))));
  }
  EXPECT_THAT([] { return losses::huber(0); }, ThrowsMessage<InvalidArgument>(HasSubstr("delta is 0")));
  EXPECT_THAT([] { return losses::binary_crossentropy({.label_smoothing = 2}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("label_smoothing is 2")));
  EXPECT_THAT([] { return losses::binary_focal_crossentropy({.gamma = -1}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("gamma is -1")));
}

}  // namespace
}  // namespace cohort::testing
