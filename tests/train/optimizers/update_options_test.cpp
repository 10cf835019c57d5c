// What is done to variables beside the rule of an optimizer: decay, masters, averages; and all options with
// other strategies and gradients.
#include <cohort/train/optimizers/update_options.h>

#include <cmath>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/adam_w.h>
#include <cohort/train/optimizers/lamb.h>
#include <cohort/train/optimizers/sgd.h>

#include "update_options_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ValueOptions : public WithOptions {};
COHORT_INSTANTIATE_REPLICAS(ValueOptions);

TEST_P(ValueOptions, DecayTakesAPartOfTheVariableBeforeItsUpdate) {
  const Variable weights = variable_of(Tensor::from({10.0, -20.0}));
  Sgd optimizer({.learning_rate = 0.5});
  optimizer.set_update_options({.weight_decay = 0.1});
  step(optimizer, {weights}, {Tensor::from({1.0, 2.0})});
  EXPECT_THAT(values(weights), near({10 * 0.95 - 0.5, -20 * 0.95 - 1}));
}

TEST_P(ValueOptions, DecayOfAdamWIsAddedToThat) {
  const Variable weights = variable_of(Tensor::from({10.0}));
  AdamW optimizer({.learning_rate = 0.5, .weight_decay = 0.1});
  optimizer.set_update_options({.weight_decay = 0.3});
  step(optimizer, {weights}, {Tensor::from({0.0})});
  EXPECT_THAT(values(weights), near({10 * (1 - 0.5 * 0.4)}));
}

// Steps of 2^-10 are lost beside 1 in bfloat16, which has 8 bits.
TEST_P(ValueOptions, MastersKeepSmallSteps) {
  for (const bool has_masters : {false, true}) {
    const Variable weights = variable_of(Tensor::full({3}, DType::kBFloat16, 1));
    Sgd optimizer({.learning_rate = 1});
    optimizer.set_update_options({.float32_masters = has_masters});
    for (int i = 0; i < 64; ++i) step(optimizer, {weights}, {Tensor::full({3}, DType::kFloat64, 1.0 / 1024)});
    EXPECT_THAT(values(weights), Each(DoubleNear(has_masters ? 1 - 64.0 / 1024 : 1, 1e-3)));
    if (!has_masters) continue;
    const auto slots = optimizer.slots(weights);
    ASSERT_EQ(slots.size(), 1U);
    EXPECT_EQ(slots[0].name(), "weights/master");
    EXPECT_EQ(slots[0].dtype(), DType::kFloat32);
    EXPECT_TRUE(bitwise_equal(slots[0].read().cast(DType::kBFloat16), weights.read()));
  }
}

TEST_P(ValueOptions, MastersAreTrainedAsFloat32Variables) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    const Variable half = variable_of(Tensor::from({1.0, -2.0, 0.5}).cast(dtype));
    const Variable wide = variable_of(Tensor::from({1.0F, -2.0F, 0.5F}));
    Adam of_half({.learning_rate = 0.01});
    of_half.set_update_options({.float32_masters = true});
    Adam of_wide({.learning_rate = 0.01});
    for (int i = 0; i < 5; ++i) {
      const Tensor gradient = Tensor::from({1.0 * i, -0.5, 4.0});  // these and their parts are exact
      for (const auto& [optimizer, variable] : {std::pair(&of_half, half), std::pair(&of_wide, wide)})
        strategy_.run([&, &optimizer = *optimizer, &variable = variable] {
          optimizer.apply_gradients({{gradient.cast(variable.dtype()), variable}});
        });
    }
    EXPECT_TRUE(bitwise_equal(of_half.slots(half)[2].read(), wide.read())) << to_string(dtype);
    for (std::size_t slot = 0; slot < 2; ++slot)
      EXPECT_TRUE(bitwise_equal(of_half.slots(half)[slot].read(), of_wide.slots(wide)[slot].read()));
  }
}

TEST_P(ValueOptions, AveragesFollowTheVariableFromItsFirstStepOn) {
  const Variable weights = variable_of(Tensor::from({10.0}));
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_update_options({.average = AverageOptions{.momentum = 0.75}});
  for (int i = 0; i < 3; ++i) step(optimizer, {weights}, {Tensor::from({2.0})});
  // Values 8, 6, 4; averages 8, 7.5, 6.625.
  EXPECT_THAT(values(weights), near({4}));
  EXPECT_THAT(values(optimizer.slots(weights)[0]), near({6.625}));
  const auto scope = strategy_.scope();
  optimizer.swap_averages({{weights}});
  EXPECT_THAT(values(weights), near({6.625}));
  optimizer.swap_averages({{weights}});
  EXPECT_THAT(values(weights), near({4}));
  EXPECT_THAT(values(optimizer.slots(weights)[0]), near({6.625}));
}

TEST_P(ValueOptions, AveragesAreTakenOverEverySoManySteps) {
  const Variable weights = variable_of(Tensor::from({10.0}));
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_update_options({.average = AverageOptions{.momentum = 0.5, .overwrite_every = 2}});
  for (int i = 0; i < 3; ++i) step(optimizer, {weights}, {Tensor::from({2.0})});
  // 8, then 6 and the average 7 in its place, then 5 and the average 6.
  EXPECT_THAT(values(weights), near({5}));
  EXPECT_THAT(values(optimizer.slots(weights)[0]), near({6}));
}

TEST_P(ValueOptions, AveragesOfHalvesAreThoseOfTheirMasters) {
  const Variable weights = variable_of(Tensor::full({1}, DType::kBFloat16, 1));
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_update_options({.average = AverageOptions{.momentum = 0.5}, .float32_masters = true});
  for (int i = 0; i < 2; ++i) step(optimizer, {weights}, {Tensor::full({1}, DType::kFloat64, 1.0 / 1024)});
  const auto slots = optimizer.slots(weights);
  EXPECT_THAT(values(slots[0]), near({1 - 2.0 / 1024}, 1e-5));
  EXPECT_THAT(values(slots[1]), near({1 - 1.5 / 1024}, 1e-5));
  const auto scope = strategy_.scope();
  optimizer.swap_averages({{weights}});
  EXPECT_THAT(values(slots[0]), near({1 - 1.5 / 1024}, 1e-5));
  EXPECT_TRUE(bitwise_equal(weights.read(), slots[0].read().cast(DType::kBFloat16)));
}

TEST_P(ValueOptions, SwapAllAveragesOrNone) {
  const Variable first = variable_of(Tensor::from({1.0}));
  const Variable untrained = variable_of(Tensor::from({1.0}), "untrained");
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_update_options({.average = AverageOptions{.momentum = 0.5}});
  for (int i = 0; i < 2; ++i) step(optimizer, {first}, {Tensor::from({1.0})});
  const auto scope = strategy_.scope();
  EXPECT_THAT(([&] {
                optimizer.swap_averages({{first, untrained}});
              }),
              ThrowsMessage<InvalidArgument>(HasSubstr("'untrained' has no average")));
  EXPECT_THAT(values(first), near({-1}));
}

// Lamb takes two passes, of which one makes the average and the other decays.
TEST_P(ValueOptions, WorkForLambToo) {
  const Tensor value = Tensor::from({3.0, -4.0});
  const Variable plain = variable_of(value);
  const Variable decayed = variable_of(Tensor::from({3.0 * 0.99, -4.0 * 0.99}));
  const Variable averaged = variable_of(value);
  Lamb of_plain({.learning_rate = 0.1});
  Lamb of_averaged({.learning_rate = 0.1});
  of_averaged.set_update_options({.weight_decay = 0.1, .average = AverageOptions{.momentum = 0.5}});
  step(of_plain, {decayed}, {Tensor::from({1.0, 2.0})});
  step(of_averaged, {averaged}, {Tensor::from({1.0, 2.0})});
  EXPECT_THAT(values(averaged), near(values(decayed)));
  EXPECT_THAT(values(of_averaged.slots(averaged)[2]), near(values(decayed)));
}

const std::pair<const char*, UpdateOptions> kOptions[] = {
    {"decay", {.weight_decay = 0.1}},
    {"value", {.clip = {.value = 0.5}}},
    {"norm", {.clip = {.norm = 0.5}}},
    {"global norm", {.clip = {.global_norm = 0.5}}},
    {"accumulation", {.accumulation_steps = 2}},
    {"scale", {.loss_scale = LossScaleOptions{.first = 4, .steps_to_double = 2}}},
    {"average", {.average = AverageOptions{.momentum = 0.5, .overwrite_every = 2}}},
    {"masters", {.float32_masters = true}}};

/// Four steps with gradients whose sums over replicas are the same for any number of these.
void train(const Strategy& strategy, Optimizer& optimizer, const Variable& variable) {
  for (int step = 0; step < 4; ++step) {
    strategy.run([&](ReplicaContext& replica) {
      const bool is_first = replica.replica_id_in_sync_group() == 0;
      const double own = is_first ? 1.5 + step : 0;
      optimizer.apply_gradients({{Tensor::from({own, -own}).cast(variable.dtype()), variable}});
    });
  }
}

TEST_P(ValueOptions, AreTheSameWithCentralStorage) {
  const CentralStorageStrategy central(cpu_devices(replicas()), Device::cpu(0), kPatient);
  for (const auto& [what, options] : kOptions) {
    const Variable mirrored = variable_of(Tensor::full({2}, DType::kBFloat16, 2));
    const Variable stored = [&] {
      const auto scope = central.scope();
      return Variable({.name = "stored", .initial_value = Tensor::full({2}, DType::kBFloat16, 2)});
    }();
    Adam of_mirrored({.learning_rate = 0.1});
    Adam of_stored({.learning_rate = 0.1});
    of_mirrored.set_update_options(options);
    of_stored.set_update_options(options);
    train(strategy_, of_mirrored, mirrored);
    train(central, of_stored, stored);
    EXPECT_EQ(values(stored), values(mirrored)) << what;
    EXPECT_EQ(of_stored.iterations(), of_mirrored.iterations()) << what;
    EXPECT_EQ(of_stored.loss_scale_state(), of_mirrored.loss_scale_state()) << what;
  }
}

TEST_P(ValueOptions, AreTheSameForSparseGradients) {
  const Tensor rows = Tensor::from({1.0F, 2.0F, 4.0F, 8.0F}).reshape({2, 2});
  const IndexedSlices sparse{rows, Tensor::from(std::vector<std::int64_t>{2, 0}), {3, 2}};
  const Tensor table = Tensor::full({3, 2}, DType::kFloat32, 1);
  for (const auto& [what, options] : kOptions) {
    const Variable of_rows = variable_of(table);
    const Variable dense = variable_of(table);
    Adam by_rows({.learning_rate = 0.1});
    Adam by_all({.learning_rate = 0.1});
    by_rows.set_update_options(options);
    by_all.set_update_options(options);
    for (int i = 0; i < 4; ++i) {
      strategy_.run([&] { by_rows.apply_sparse_gradients({{sparse, of_rows}}); });
      strategy_.run([&] { by_all.apply_gradients({{densify(sparse), dense}}); });
    }
    EXPECT_EQ(values(of_rows), values(dense)) << what;
  }
}

TEST(UpdateOptions, AreRefusedOutOfRange) {
  const auto refusal = [](const UpdateOptions& options) {
    return message_of(ErrorCode::kInvalidArgument, [&] { Sgd().set_update_options(options); });
  };
  EXPECT_THAT(refusal({.weight_decay = -1}), HasSubstr("weight_decay is -1"));
  EXPECT_THAT(refusal({.clip = {.value = 0}}), HasSubstr("clip.value is 0"));
  EXPECT_THAT(refusal({.clip = {.norm = -1}}), HasSubstr("clip.norm is -1"));
  EXPECT_THAT(refusal({.clip = {.global_norm = std::nan("")}}), HasSubstr("clip.global_norm is nan"));
  EXPECT_THAT(refusal({.clip = {.value = 1, .norm = 1}}), HasSubstr("several limits"));
  EXPECT_THAT(refusal({.accumulation_steps = 0}), HasSubstr("accumulation_steps is 0"));
  EXPECT_THAT(refusal({.loss_scale = LossScaleOptions{.first = 0}}), HasSubstr("loss_scale.first is 0"));
  EXPECT_THAT(refusal({.loss_scale = LossScaleOptions{.steps_to_double = 0}}),
              HasSubstr("loss_scale.steps_to_double is 0"));
  EXPECT_THAT(refusal({.average = AverageOptions{.momentum = 1.5}}), HasSubstr("average.momentum is 1.5"));
  EXPECT_THAT(refusal({.average = AverageOptions{.overwrite_every = -1}}),
              HasSubstr("average.overwrite_every is -1"));
}

TEST(UpdateOptions, AreSetBeforeTheFirstStep) {
  const Variable weights({.initial_value = Tensor::from({1.0})});
  Sgd optimizer;
  optimizer.apply_gradients({{Tensor::from({1.0}), weights}});
  EXPECT_THAT([&] { optimizer.set_update_options({.weight_decay = 0.1}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("has made steps or slots")));
}

}  // namespace
}  // namespace cohort::testing
