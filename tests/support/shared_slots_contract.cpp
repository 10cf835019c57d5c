#include "shared_slots_contract.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/sharded_optimizer.h>

namespace cohort::testing {
namespace {

enum class Slots { kWhole, kShared };

/// Some variables, and Adam.
class Model {
 public:
  Model(Strategy strategy, Slots slots) : strategy_(std::move(strategy)), scope_(strategy_.scope()) {
    for (const Shape& shape : {Shape{3}, Shape{1024, 37}, Shape{}, Shape{65000}})
      variables_.emplace_back(VariableOptions{.shape = shape,
                                              .dtype = shape.rank() == 2 ? DType::kBFloat16 : DType::kFloat32,
                                              .name = fmt::format("w{}", variables_.size())});
    optimizer_ = std::make_unique<Adam>();
    optimizer_->set_update_options({.loss_scale = LossScaleOptions{.first = 16, .steps_to_double = 3},
                                    .average = AverageOptions{.momentum = 0.5},
                                    .float32_masters = true});
    if (slots == Slots::kShared) optimizer_ = std::make_unique<ShardedOptimizer>(std::move(optimizer_));
    checkpoint_ = std::make_unique<Checkpoint>(strategy_);
    for (const Variable& variable : variables_) checkpoint_->add(variable.name(), variable);
    checkpoint_->add("adam", *optimizer_, variables_);
  }

  /// Two more, whose gradients do not depend on the number of replicas.
  Model& train() {
    for (int step = 0; step < 2; ++step, ++steps_) {
      strategy_.run([&] {
        std::vector<GradientAndVariable> gradients;
        for (const Variable& variable : variables_) {
          const Tensor gradient = Tensor::uninitialized(variable.shape(), DType::kFloat32);
          for (std::size_t i = 0; i < gradient.elements(); ++i)
            gradient.span<float>()[i] = std::sin(static_cast<float>(i) + static_cast<float>(steps_));
          gradients.push_back({gradient.cast(variable.dtype()), variable});
        }
        optimizer_->apply_gradients(gradients, {.aggregation = GradientAggregation::kNone});
      });
    }
    return *this;
  }

  Model& restore(const std::string& path) {
    checkpoint_->restore(path).assert_consumed();
    steps_ = static_cast<int>(optimizer_->iterations());
    return *this;
  }
  std::string save(const std::string& folder) { return checkpoint_->save(folder, steps_); }
  std::string save_async(const std::string& folder) {
    std::string path = checkpoint_->save_async(folder, steps_);
    checkpoint_->wait();
    return path;
  }

  /// All values, and the slots.
  [[nodiscard]] std::vector<Tensor> state() const {
    std::vector<Tensor> state;
    for (const Variable& variable : variables_) {
      state.push_back(variable.components().front().clone());
      for (std::size_t slot = 0; slot < optimizer_->all_slot_names(variable.dtype()).size(); ++slot)
        state.push_back(optimizer_->read_slot(variable, slot).clone());
    }
    const auto [scale, steps] = optimizer_->loss_scale_state();
    state.push_back(Tensor::from({scale, static_cast<double>(steps), optimizer_->learning_rate()}));
    return state;
  }

 private:
  Strategy strategy_;
  StrategyScope scope_;
  std::vector<Variable> variables_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Checkpoint> checkpoint_;
  int steps_ = 0;
};

void expect_same(const std::vector<Tensor>& state, const std::vector<Tensor>& wanted, const char* what) {
  ASSERT_EQ(state.size(), wanted.size());
  for (std::size_t i = 0; i < state.size(); ++i)
    EXPECT_TRUE(bitwise_equal(state[i], wanted[i])) << what << ", tensor " << i;
}

}  // namespace

void check_checkpoints_of_shares(Bootstrap& worker, int devices, const std::string& folder) {
  const auto with_devices = [&](int count) {
    return MultiWorkerMirroredStrategy(worker, {.timeout_seconds = 60}, cpu_devices(count));
  };
  const OneDeviceStrategy alone(Device::cpu(0));
  const auto after_two = Model(alone, Slots::kWhole).train().state();
  const auto after_four = Model(alone, Slots::kWhole).train().train().state();

  std::string of_shares;
  {
    Model shared(with_devices(devices), Slots::kShared);
    of_shares = shared.train().save(folder + "/shared");
    expect_same(shared.state(), after_two, "shared");
    shared.train();
    expect_same(shared.restore(shared.save_async(folder + "/background")).state(), after_four,
                "in the background");
  }
  const std::string of_whole = Model(with_devices(devices), Slots::kWhole).train().save(folder + "/whole");
  for (const std::string& path : {of_shares, of_whole}) {
    for (const int others : {devices, devices + 1}) {
      Model whole(with_devices(others), Slots::kWhole);
      expect_same(whole.restore(path).train().state(), after_four, "whole");
    }
    for (const int others : {devices, devices + 1}) {
      Model shared(with_devices(others), Slots::kShared);
      expect_same(shared.restore(path).state(), after_two, "shared again");
      expect_same(shared.train().state(), after_four, "shared again");
    }
    // Each worker by itself.
    expect_same(Model(alone, Slots::kWhole).restore(path).train().state(), after_four, "alone");
    expect_same(Model(alone, Slots::kShared).restore(path).train().state(), after_four,
                "alone, in one share");
    static_cast<void>(worker.exchange("read"));
  }
}

}  // namespace cohort::testing
