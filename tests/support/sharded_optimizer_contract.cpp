#include "worker_contracts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/optimizers/adagrad.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/train/optimizers/sharded_optimizer.h>

#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Small ones, one that is cut among some replicas, large ones with and without a remainder, and an empty one.
const std::vector<Shape> kShapes{{3}, {1500}, {300, 71}, {0, 5}, {}, {49152}, {2, 2}};

std::vector<Variable> variables_of(DType dtype) {
  std::vector<Variable> variables;
  for (const Shape& shape : kShapes) {
    const Tensor value = Tensor::uninitialized(shape, DType::kFloat64);
    for (std::size_t i = 0; i < value.elements(); ++i)
      value.span<double>()[i] = std::sin(static_cast<double>(i));
    variables.emplace_back(
        VariableOptions{.name = "w" + std::to_string(variables.size()), .initial_value = value.cast(dtype)});
  }
  return variables;
}

bool all_finite(const Tensor& tensor) {
  const Tensor wide = tensor.cast(DType::kFloat64);
  return std::ranges::all_of(wide.span<double>(), [](double element) { return std::isfinite(element); });
}

Tensor gradient_of(const Shape& shape, DType dtype, int replica, int step) {
  const Tensor gradient = Tensor::uninitialized(shape, DType::kFloat64);
  // From -1/3 to 1/3, in an order that looks like none.
  constexpr unsigned kNumbers = 2003;
  unsigned number = static_cast<unsigned>(97 * (replica + 1) + 31 * step) % kNumbers;
  const unsigned stride = static_cast<unsigned>(829 * (replica + 1)) % kNumbers;
  for (double& element : gradient.span<double>()) {
    element = (static_cast<double>(number) / (kNumbers - 1) * 2 - 1) / 3;
    number = (number + stride) % kNumbers;
  }
  return gradient.cast(dtype);
}

void train(const Strategy& strategy, Optimizer& optimizer, const std::vector<Variable>& variables,
           GradientAggregation aggregation) {
  for (int step = 0; step < 3; ++step) {
    strategy.run([&](ReplicaContext& replica) {
      const bool are_equal = aggregation == GradientAggregation::kNone;
      std::vector<GradientAndVariable> gradients;
      gradients.reserve(variables.size());
      for (const Variable& variable : variables)
        gradients.push_back({gradient_of(variable.shape(), variable.dtype(),
                                         are_equal ? 0 : replica.replica_id_in_sync_group(), step),
                             variable});
      // The order of a step's list does not matter, and may change. The last step is a mean.
      if (step == 1) std::ranges::reverse(gradients);
      const int id = replica.replica_id_in_sync_group();
      const auto examples = step == 2 ? std::optional(are_equal ? 1.75 : 0.3 * id + 0.1) : std::nullopt;
      optimizer.apply_gradients(gradients, {.aggregation = aggregation, .examples = examples});
    });
  }
  EXPECT_EQ(optimizer.iterations(), 3);
}

void expect_equal_bits(const Optimizer& optimizer, const std::vector<Variable>& alone,
                       const Optimizer& sharded, const std::vector<Variable>& shared,
                       const std::string& what) {
  for (std::size_t i = 0; i < alone.size(); ++i) {
    for (std::size_t component = 0; component < alone[i].components().size(); ++component)
      EXPECT_TRUE(bitwise_equal(shared[i].components()[component], alone[i].components()[component]))
          << what << " " << alone[i].name() << " component " << component;
    for (std::size_t slot = 0; slot < optimizer.all_slot_names(alone[i].dtype()).size(); ++slot)
      EXPECT_TRUE(bitwise_equal(sharded.read_slot(shared[i], slot), optimizer.read_slot(alone[i], slot)))
          << what << " " << alone[i].name() << " slot " << slot;
  }
}

template <class AnOptimizer>
void check_bits(const Strategy& strategy, DType dtype, GradientAggregation aggregation) {
  const auto scope = strategy.scope();
  const std::vector<Variable> alone = variables_of(dtype);
  const std::vector<Variable> shared = variables_of(dtype);
  AnOptimizer optimizer;
  ShardedOptimizer sharded(std::make_unique<AnOptimizer>());
  train(strategy, optimizer, alone, aggregation);
  train(strategy, sharded, shared, aggregation);
  expect_equal_bits(optimizer, alone, sharded, shared,
                    fmt::format("{} {} aggregation {}", AnOptimizer::kName, to_string(dtype),
                                static_cast<int>(aggregation)));
}

constexpr int kSteps = 6;
constexpr int kStepOfOverflow = 2;

/// In one step a gradient of the last replica is infinite.
void train_with_overflow(const Strategy& strategy, Optimizer& optimizer,
                         const std::vector<Variable>& variables) {
  for (int step = 0; step < kSteps; ++step) {
    strategy.run([&](ReplicaContext& replica) {
      const int id = replica.replica_id_in_sync_group();
      const bool overflows = step == kStepOfOverflow && id == replica.num_replicas_in_sync() - 1;
      std::vector<GradientAndVariable> gradients;
      gradients.reserve(variables.size());
      for (const Variable& variable : variables)
        gradients.push_back({gradient_of(variable.shape(), variable.dtype(), id, step), variable});
      if (overflows) gradients[2].gradient.rows(7, 8).fill(std::numeric_limits<double>::infinity());
      if (step / 2 == 1) std::ranges::reverse(gradients);
      optimizer.apply_gradients(gradients);
    });
  }
}

template <class AnOptimizer>
void check_options(const Strategy& strategy, DType dtype, const UpdateOptions& options,
                   const std::string& what) {
  const auto scope = strategy.scope();
  const std::vector<Variable> alone = variables_of(dtype);
  const std::vector<Variable> shared = variables_of(dtype);
  AnOptimizer optimizer;
  optimizer.set_update_options(options);
  auto wrapped = std::make_unique<AnOptimizer>();
  wrapped->set_update_options(options);
  ShardedOptimizer sharded(std::move(wrapped));
  train_with_overflow(strategy, optimizer, alone);
  train_with_overflow(strategy, sharded, shared);
  EXPECT_EQ(sharded.iterations(), optimizer.iterations()) << what;
  EXPECT_EQ(sharded.loss_scale_state(), optimizer.loss_scale_state()) << what;
  expect_equal_bits(optimizer, alone, sharded, shared, what);
  if (options.loss_scale) {
    for (const Variable& variable : shared)
      EXPECT_TRUE(all_finite(variable.components().back())) << what << " " << variable.name();
  }
  if (!options.average) return;
  optimizer.swap_averages(alone);
  sharded.swap_averages(shared);
  expect_equal_bits(optimizer, alone, sharded, shared, what + ", swapped");
}

/// The element is on one worker alone, and all see it.
void check_norm_that_is_not_finite(const Strategy& strategy) {
  const auto scope = strategy.scope();
  const Variable variable({.shape = {5}, .dtype = DType::kFloat32, .name = "clipped"});
  auto sgd = std::make_unique<Sgd>();
  sgd->set_update_options({.clip = {.global_norm = 1}});
  ShardedOptimizer sharded(std::move(sgd));
  strategy.run([&](ReplicaContext& replica) {
    const Tensor gradient = Tensor::full({5}, DType::kFloat32, 100);
    if (replica.replica_id_in_sync_group() == 0)
      gradient.span<float>()[3] = std::numeric_limits<float>::quiet_NaN();
    sharded.apply_gradients({{gradient, variable}});
  });
  for (const float value : variable.read().span<float>()) EXPECT_TRUE(std::isnan(value));
}

}  // namespace

void check_bits_of_shares(Bootstrap& worker, int devices, bool reproducible) {
  const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60, .reproducible = reproducible},
                                             cpu_devices(devices));
  for (const auto aggregation :
       {GradientAggregation::kSum, GradientAggregation::kSumInPlace, GradientAggregation::kNone}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16})
      check_bits<Adam>(strategy, dtype, aggregation);
    check_bits<Sgd>(strategy, DType::kFloat32, aggregation);
    check_bits<Momentum>(strategy, DType::kFloat32, aggregation);
  }
}

void check_options_of_shares(Bootstrap& worker, int devices) {
  const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60, .reproducible = true},
                                             cpu_devices(devices));
  const LossScaleOptions scale{.first = 8, .steps_to_double = 2};
  const std::pair<const char*, UpdateOptions> cases[] = {
      {"decay", {.weight_decay = 0.1}},
      {"value", {.clip = {.value = 0.1}}},
      {"norm", {.clip = {.norm = 0.5}}},
      {"global norm", {.clip = {.global_norm = 0.5}}},
      {"global norm of each", {.clip = {.global_norm = 0.5, .each_replica = true}}},
      {"accumulation", {.accumulation_steps = 2}},
      {"scale", {.loss_scale = scale}},
      {"average", {.average = AverageOptions{.momentum = 0.5, .overwrite_every = 4}}},
      {"masters", {.float32_masters = true}},
      {"all",
       {.weight_decay = 0.1,
        .clip = {.global_norm = 0.5},
        .accumulation_steps = 2,
        .loss_scale = scale,
        .average = AverageOptions{},
        .float32_masters = true}}};
  for (const auto& [what, options] : cases) check_options<Adam>(strategy, DType::kBFloat16, options, what);
  check_options<Adagrad>(strategy, DType::kFloat32, {.clip = {.norm = 0.5}},
                         "slots that begin with a number");
  check_norm_that_is_not_finite(strategy);
}

void check_slots_of_shares(Bootstrap& worker, int devices) {
  const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60}, cpu_devices(devices));
  const auto scope = strategy.scope();
  const std::vector<Variable> variables{Variable({.shape = {1000, 301}, .name = "kernel"}),
                                        Variable({.shape = {77}, .name = "bias"})};
  ShardedOptimizer sharded(std::make_unique<Adam>());
  EXPECT_EQ(sharded.slot_bytes(), 0U);
  sharded.make_slots(variables);
  const double all = 2.0 * 4 * (1000 * 301 + 77);
  double here = 0;
  for (int replica = 0; replica < devices; ++replica) {
    EXPECT_LE(static_cast<double>(sharded.slot_bytes(replica)), 1.05 * all / strategy.num_replicas_in_sync());
    here += static_cast<double>(sharded.slot_bytes(replica));
  }
  double everywhere = 0;
  for (const std::string& text : worker.exchange(std::to_string(here))) everywhere += std::stod(text);
  EXPECT_EQ(everywhere, all);
  EXPECT_TRUE(sharded.slots(variables[0]).empty());
}

void check_odd_shares(Bootstrap& worker, int devices) {
  if (worker.size() * devices == 1) return;
  const bool is_odd = worker.rank() == worker.size() - 1;
  const auto step_of_odd_one = [&](auto make) {
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 20}, cpu_devices(devices));
    const auto scope = strategy.scope();
    const std::vector<Variable> variables = variables_of(DType::kFloat32);
    ShardedOptimizer sharded(std::make_unique<Sgd>());
    sharded.make_slots(variables);
    return message_of(is_odd ? ErrorCode::kInvalidArgument : ErrorCode::kAborted, [&] {
      strategy.run([&](ReplicaContext& replica) {
        std::vector<GradientAndVariable> gradients;
        gradients.reserve(variables.size());
        for (const Variable& variable : variables)
          gradients.push_back({Tensor::zeros(variable.shape(), variable.dtype()), variable});
        const int odd = replica.num_replicas_in_sync() - 1;
        if (replica.replica_id_in_sync_group() == odd) make(gradients);
        sharded.apply_gradients(gradients);
      });
    });
  };
  const std::string odd = is_odd ? "" : fmt::format("replica {}", worker.size() * devices - 1);
  EXPECT_THAT(
      step_of_odd_one([](auto& gradients) { gradients[0].gradient = Tensor::zeros({4}, DType::kFloat32); }),
      AllOf(HasSubstr("the gradient of variable 'w0' is float32[4], but the variable is float32[3]"),
            HasSubstr(odd)));
  EXPECT_THAT(step_of_odd_one([](auto& gradients) { gradients.pop_back(); }),
              AllOf(HasSubstr("a step has 6 gradients, but the replicas share 7 variables: w0, w1, "),
                    HasSubstr(odd)));
}

}  // namespace cohort::testing
