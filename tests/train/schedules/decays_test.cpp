// Each schedule at ten thousand steps, against its formula written another way.
#include <cmath>
#include <limits>
#include <numbers>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/train/schedules/decays.h>

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kDecaySteps = 10'000;

template <class Formula>
void expect_rates(const LearningRateSchedule& schedule, Formula formula) {
  for (std::int64_t step = 0; step < kDecaySteps; ++step) {
    const double expected = formula(step);
    ASSERT_NEAR(schedule(step), expected, 1e-12 * (1 + std::abs(expected))) << "step " << step;
  }
}

/// What is left of 1 after `times` products.
double product(double factor, std::int64_t times) {
  double result = 1;
  for (std::int64_t i = 0; i < times; ++i) result *= factor;
  return result;
}

TEST(Decays, ARateIsPiecewiseConstant) {
  expect_rates(piecewise_constant({10, 500}, {1, 0.5, 0.25}), [](std::int64_t step) {
    return step <= 10 ? 1 : step <= 500 ? 0.5 : 0.25;
  });
  expect_rates(piecewise_constant({}, {0.125}), [](std::int64_t) { return 0.125; });
}

TEST(Decays, ExponentialDecaysAreProducts) {
  expect_rates(exponential_decay({.learning_rate = 0.3, .steps = 7, .rate = 0.9, .staircase = true}),
               [](std::int64_t step) { return 0.3 * product(0.9, step / 7); });
  expect_rates(exponential_decay({.learning_rate = 0.3, .steps = 500, .rate = 0.9}),
               [](std::int64_t step) { return 0.3 * std::exp(std::log(0.9) / 500 * double(step)); });
  expect_rates(natural_exponential_decay({.learning_rate = 0.3, .steps = 500, .rate = 0.9}),
               [](std::int64_t step) { return 0.3 * std::pow(std::numbers::e, -0.0018 * double(step)); });
}

TEST(Decays, InverseTimeDecaysAreFractions) {
  expect_rates(inverse_time_decay({.learning_rate = 2, .steps = 16, .rate = 0.5}),
               [](std::int64_t step) { return 64 / (32 + double(step)); });
  expect_rates(inverse_time_decay({.learning_rate = 2, .steps = 16, .rate = 0.5, .staircase = true}),
               [](std::int64_t step) {
                 const std::int64_t periods = step / 16;
                 return 4 / (2 + double(periods));
               });
}

TEST(Decays, PolynomialsEndOrBeginAgain) {
  const auto squared = [](std::int64_t step, std::int64_t steps) {
    const double left = double(std::max<std::int64_t>(steps - step, 0)) / double(steps);
    return 0.1 + 0.9 * left * left;
  };
  PolynomialDecayOptions options{.learning_rate = 1, .steps = 300, .end_learning_rate = 0.1, .power = 2};
  expect_rates(polynomial_decay(options), [&](std::int64_t step) { return squared(step, 300); });
  options.cycle = true;
  expect_rates(polynomial_decay(options),
               [&](std::int64_t step) { return squared(step, step == 0 ? 300 : (step + 299) / 300 * 300); });
}

TEST(Decays, CosinesFallToAlpha) {
  expect_rates(cosine_decay({.learning_rate = 0.4, .steps = 3000, .alpha = 0.25}), [](std::int64_t step) {
    const double half = std::cos(std::numbers::pi / 2 * double(std::min<std::int64_t>(step, 3000)) / 3000);
    return 0.1 + 0.3 * half * half;
  });
}

// Periods are walked through one after the other.
TEST(Decays, CosinesRestart) {
  for (const double factor : {1.0, 2.0, 3.0}) {
    std::int64_t begin = 0;
    std::int64_t length = 25;
    double height = 0.4;
    expect_rates(
        cosine_restarts(
            {.learning_rate = 0.4, .first_steps = 25, .period_factor = factor, .learning_rate_factor = 0.9}),
        [&](std::int64_t step) {
          if (step == begin + length) {
            begin = step;
            length *= std::int64_t(factor);
            height *= 0.9;
          }
          const double half = std::cos(std::numbers::pi / 2 * double(step - begin) / double(length));
          return height * half * half;
        });
  }
}

// From torch.optim.lr_scheduler.OneCycleLR of PyTorch 2.15 (max_lr 0.1, total_steps 100, its other defaults).
TEST(Decays, OneCycleIsThatOfPyTorch) {
  const LearningRateSchedule schedule = one_cycle({.highest_learning_rate = 0.1, .steps = 100});
  EXPECT_NEAR(schedule(0), 0.004, 1e-15);
  EXPECT_NEAR(schedule(1), 0.00428137805659075, 1e-15);
  EXPECT_NEAR(schedule(10), 0.0295163948464101, 1e-15);
  EXPECT_NEAR(schedule(28), 0.0997186219434093, 1e-15);
  EXPECT_NEAR(schedule(29), 0.1, 1e-15);
  EXPECT_NEAR(schedule(30), 0.0999496535284524, 1e-15);
  EXPECT_NEAR(schedule(50), 0.0793893450575732, 1e-15);
  EXPECT_NEAR(schedule(75), 0.0263068616500826, 1e-15);
  EXPECT_NEAR(schedule(98), 5.07464715475788e-05, 1e-15);
  EXPECT_NEAR(schedule(99), 4e-07, 1e-15);
  EXPECT_EQ(schedule(1'000'000), schedule(99));
}

TEST(Decays, AWarmUpRisesAlongALine) {
  const LearningRateSchedule then = exponential_decay({.learning_rate = 0.5, .steps = 10, .rate = 0.9});
  expect_rates(warm_up(then, {.steps = 250, .first_learning_rate = 0.25}),
               [&](std::int64_t step) { return step < 250 ? 0.25 + double(step) / 1000 : then(step - 250); });
  EXPECT_EQ(warm_up(0.5, {.steps = 0})(0), 0.5);
}

TEST(Decays, WrongOptionsAreNamed) {
  const auto refuses = [](auto make, const char* text) {
    EXPECT_THAT([&] { static_cast<void>(make()); }, ThrowsMessage<InvalidArgument>(HasSubstr(text)));
  };
  refuses([] { return piecewise_constant({1, 2}, {1, 2}); }, "2 values for 2 boundaries");
  refuses([] { return piecewise_constant({2, 2}, {1, 2, 3}); }, "must rise");
  refuses([] { return exponential_decay({.steps = 0}); }, "exponential_decay: steps is 0");
  refuses([] { return inverse_time_decay({.rate = -1}); }, "inverse_time_decay: rate is -1");
  refuses([] { return polynomial_decay({.power = 0}); }, "polynomial_decay: power is 0");
  refuses([] { return cosine_decay({.alpha = 2}); }, "cosine_decay: alpha is 2");
  refuses([] { return cosine_restarts({.period_factor = 0.5}); }, "period_factor is 0.5");
  refuses([] { return one_cycle({.rising = -1}); }, "one_cycle: rising is -1");
  refuses([] { return warm_up(1, {.steps = -1}); }, "warm_up: steps is -1");
  refuses([] { return cosine_decay({.learning_rate = std::numeric_limits<double>::quiet_NaN()}); },
          "learning_rate is nan");
}

}  // namespace
}  // namespace cohort::testing
