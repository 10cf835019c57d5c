// Optimizers that remember: what they do to variables, and where their slots are.
#include <cmath>
#include <new>
#include <optional>

#include <gmock/gmock.h>

#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/value/variable_creator_scope.h>

#include "../../strategy/strategies.h"
#include "device/rules/optimizer_rules.h"

namespace cohort::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

constexpr int kElements = 1003;  // no multiple of any vector
constexpr int kSteps = 5;

double initial(int element) { return std::sin(element); }
double slope(int step, int element) { return std::cos(step + 0.1 * element); }

template <class Function>
Tensor filled(DType dtype, Function value) {
  std::vector<double> values(kElements);
  for (int i = 0; i < kElements; ++i) values[static_cast<std::size_t>(i)] = value(i);
  return vector_of(values).cast(dtype);
}

/// The values of a variable after some steps of `optimizer`, with gradients rounded to `dtype`.
std::vector<double> trained(Optimizer& optimizer, DType dtype) {
  const Variable variable({.name = "weights", .initial_value = filled(dtype, initial)});
  for (int step = 1; step <= kSteps; ++step)
    optimizer.apply_gradients({{filled(dtype, [&](int i) { return slope(step, i); }), variable}});
  return numbers(variable.read());
}

std::vector<double> momentum_by_hand(const MomentumOptions& options) {
  std::vector<double> values;
  for (int i = 0; i < kElements; ++i) {
    double value = initial(i);
    double velocity = 0;
    for (int step = 1; step <= kSteps; ++step) {
      velocity = options.momentum * velocity - options.learning_rate * slope(step, i);
      value +=
          options.nesterov ? options.momentum * velocity - options.learning_rate * slope(step, i) : velocity;
    }
    values.push_back(value);
  }
  return values;
}

std::vector<double> adam_by_hand(const AdamOptions& options) {
  std::vector<double> values;
  for (int i = 0; i < kElements; ++i) {
    double value = initial(i);
    double first = 0;
    double second = 0;
    for (int step = 1; step <= kSteps; ++step) {
      const double g = slope(step, i);
      first = options.beta_1 * first + (1 - options.beta_1) * g;
      second = options.beta_2 * second + (1 - options.beta_2) * g * g;
      const double rate = options.learning_rate * std::sqrt(1 - std::pow(options.beta_2, step)) /
                          (1 - std::pow(options.beta_1, step));
      value -= rate * first / (std::sqrt(second) + options.epsilon);
    }
    values.push_back(value);
  }
  return values;
}

struct Precision {
  DType dtype;
  double tolerance;
};
constexpr Precision kPrecisions[] = {
    {DType::kFloat64, 1e-12}, {DType::kFloat32, 1e-5}, {DType::kFloat16, 2e-2}, {DType::kBFloat16, 1e-1}};

TEST(Momentum, FollowsItsFormula) {
  for (const bool nesterov : {false, true}) {
    const MomentumOptions options{.learning_rate = 0.1, .momentum = 0.8, .nesterov = nesterov};
    for (const auto& [dtype, tolerance] : kPrecisions) {
      Momentum optimizer(options);
      EXPECT_THAT(trained(optimizer, dtype), Pointwise(DoubleNear(tolerance), momentum_by_hand(options)))
          << to_string(dtype) << (nesterov ? ", nesterov" : "");
    }
  }
}

TEST(Adam, FollowsItsFormula) {
  const AdamOptions options{.learning_rate = 0.05, .beta_1 = 0.8, .beta_2 = 0.99};
  for (const auto& [dtype, tolerance] : kPrecisions) {
    Adam optimizer(options);
    EXPECT_THAT(trained(optimizer, dtype), Pointwise(DoubleNear(tolerance), adam_by_hand(options)))
        << to_string(dtype);
  }
}

TEST(Optimizers, RefuseOptionsOutOfRange) {
  EXPECT_THAT([] { Momentum({.learning_rate = 0}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("learning_rate is 0")));
  EXPECT_THAT([] { Momentum({.momentum = 1}); }, ThrowsMessage<InvalidArgument>(HasSubstr("momentum is 1")));
  EXPECT_THAT([] { Adam({.beta_1 = -0.1}); }, ThrowsMessage<InvalidArgument>(HasSubstr("beta_1 is -0.1")));
  EXPECT_THAT([] { Adam({.beta_2 = 1}); }, ThrowsMessage<InvalidArgument>(HasSubstr("beta_2 is 1")));
  EXPECT_THAT([] { Adam({.epsilon = 0}); }, ThrowsMessage<InvalidArgument>(HasSubstr("epsilon is 0")));
}

TEST(Slots, AreMadeAtTheFirstUpdate) {
  const Variable weights({.shape = {2, 3}, .dtype = DType::kFloat16, .name = "weights"});
  Adam optimizer;
  EXPECT_EQ(optimizer.iterations(), 0);
  EXPECT_THAT(optimizer.slots(weights), IsEmpty());
  optimizer.apply_gradients({{Tensor::full({2, 3}, DType::kFloat16, 1), weights}});
  EXPECT_EQ(optimizer.iterations(), 1);
  const std::vector<Variable> slots = optimizer.slots(weights);
  ASSERT_THAT(slots, SizeIs(2));
  EXPECT_EQ(slots[0].name(), "weights/first_moment");
  EXPECT_EQ(slots[1].name(), "weights/second_moment");
  for (const Variable& slot : slots) {
    EXPECT_EQ(slot.shape(), weights.shape());
    EXPECT_EQ(slot.dtype(), weights.dtype());
    EXPECT_FALSE(slot.trainable());
  }
  optimizer.apply_gradients({{Tensor::full({2, 3}, DType::kFloat16, 1), weights}});
  EXPECT_EQ(optimizer.slots(weights)[0], slots[0]);
}

TEST(Slots, AreNotThoseOfAVariableThatIsGone) {
  Momentum optimizer;
  // Each variable could lie where the one before did.
  for (std::int64_t elements = 1; elements <= 20; ++elements) {
    const Variable weights({.shape = {elements}, .name = "weights"});
    optimizer.apply_gradients({{Tensor::full({elements}, DType::kFloat32, 1), weights}});
    EXPECT_EQ(optimizer.slots(weights)[0].shape(), weights.shape());
  }
}

TEST(Slots, AreMadeAtTheNextUpdateWhereOneCouldNotBeMade) {
  const Variable weights({.shape = {2}, .name = "weights"});
  const std::vector<GradientAndVariable> gradients{{Tensor::full({2}, DType::kFloat32, 1), weights}};
  Adam optimizer;
  bool failed = false;
  const VariableCreatorScope failing([&](const NextCreator& next, VariableOptions options) {
    if (!failed && options.name == "weights/second_moment") {
      failed = true;
      throw std::bad_alloc();
    }
    return next(std::move(options));
  });
  EXPECT_THROW(optimizer.apply_gradients(gradients), std::bad_alloc);
  EXPECT_THAT(optimizer.slots(weights), IsEmpty());
  optimizer.apply_gradients(gradients);
  EXPECT_THAT(optimizer.slots(weights), SizeIs(2));
}

class SlotsOfReplicas : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(SlotsOfReplicas);

TEST_P(SlotsOfReplicas, AreMirroredLikeTheirVariable) {
  const auto scope = strategy_.scope();
  const Variable weights({.shape = {2}, .name = "weights"});
  const Variable bias({.shape = {}, .dtype = DType::kFloat64, .name = "bias"});
  Momentum optimizer({.learning_rate = 0.5, .momentum = 0.5});
  for (int step = 0; step < 2; ++step) {
    strategy_.run([&](ReplicaContext& replica) {
      const double mine = replica.replica_id_in_sync_group() + 1;
      optimizer.apply_gradients(
          {{Tensor::full({2}, DType::kFloat32, mine), weights}, {Tensor::scalar(mine), bias}});
    });
  }
  EXPECT_EQ(optimizer.iterations(), 2);
  const double sum = sum_to(replicas());
  // Velocities -sum/2 and -3 sum/4.
  for (const Tensor& component : weights.components()) EXPECT_THAT(numbers(component), Each(-1.25 * sum));
  for (const Tensor& component : bias.components()) EXPECT_THAT(numbers(component), ElementsAre(-1.25 * sum));
  const std::vector<Variable> slots = optimizer.slots(weights);
  ASSERT_THAT(slots, SizeIs(1));
  ASSERT_THAT(slots[0].components(), SizeIs(replicas()));
  for (const Tensor& component : slots[0].components()) EXPECT_THAT(numbers(component), Each(-0.75 * sum));
}

TEST_P(SlotsOfReplicas, ContinueInAnotherOptimizer) {
  const auto scope = strategy_.scope();
  const Variable undisturbed({.name = "undisturbed", .initial_value = vector_of<float>({1, 2})});
  const Variable continued({.name = "continued", .initial_value = vector_of<float>({1, 2})});
  const auto step = [&](Adam& optimizer, const Variable& variable) {
    strategy_.run([&](ReplicaContext&) {
      optimizer.apply_gradients({{Tensor::full({2}, DType::kFloat32, 0.5), variable}});
    });
  };
  Adam first;
  Adam before;
  for (int i = 0; i < 3; ++i) {
    step(first, undisturbed);
    step(before, continued);
  }
  Adam after;
  after.make_slots({{continued}});
  after.set_iterations(before.iterations());
  EXPECT_EQ(after.iterations(), 3);
  const auto from = before.slots(continued);
  const auto to = after.slots(continued);
  ASSERT_THAT(to, SizeIs(2));
  for (std::size_t i = 0; i < to.size(); ++i) to[i].assign(from[i].read());
  for (int i = 0; i < 3; ++i) {
    step(first, undisturbed);
    step(after, continued);
  }
  EXPECT_EQ(numbers(continued.read()), numbers(undisturbed.read()));
  EXPECT_EQ(after.iterations(), 6);
  after.make_slots({{continued}});
  EXPECT_EQ(after.slots(continued), to);
}

TEST_P(SlotsOfReplicas, AreMadeInTheScopeOfTheirVariable) {
  std::optional<Variable> weights;
  {
    const auto scope = strategy_.scope();
    weights.emplace(VariableOptions{.shape = {2}, .name = "weights"});
    Adam optimizer;
    EXPECT_THAT([&] { strategy_.run([&](ReplicaContext&) { optimizer.make_slots({{*weights}}); }); },
                ThrowsMessage<WrongContext>(HasSubstr("make_slots was called inside run()")));
    EXPECT_THAT([&] { optimizer.set_iterations(-1); },
                ThrowsMessage<InvalidArgument>(HasSubstr("cannot have applied -1 steps")));
  }
  Adam optimizer;
  EXPECT_THAT([&] { optimizer.make_slots({{*weights}}); },
              ThrowsMessage<WrongContext>(HasSubstr("open the scope of its strategy")));
}

TEST(OptimizerRules, RoundWhatFollowsFromAConstantOnce) {
  const auto moments = converted<float>(MomentsStep<double>{.beta_1 = {0.9}, .beta_2 = {0.999}});
  EXPECT_EQ(moments.beta_1.old, 0.9F);
  EXPECT_EQ(moments.beta_2.rest, static_cast<float>(1 - 0.999));
  EXPECT_NE(moments.beta_2.rest, 1 - 0.999F);
  const auto centred = converted<double>(RmsPropStep<double, true, false>{.rate = 0.1, .epsilon = 1e-7});
  EXPECT_EQ(centred.rate, 0.1);
  EXPECT_EQ(centred.epsilon, 1e-7);
}

}  // namespace
}  // namespace cohort::testing
