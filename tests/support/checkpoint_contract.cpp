#include <cstdint>
#include <filesystem>
#include <fstream>
#include <istream>
#include <memory>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/checkpoint/safetensors.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/metrics/means.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/sharded_optimizer.h>

#include "checkpoint/format/folder.h"
#include "safetensors_file.h"
#include "thrown.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Tensor counting(std::int64_t rows) {
  std::vector<float> values(static_cast<std::size_t>(rows) * 3);
  std::iota(values.begin(), values.end(), 0.0F);
  return Tensor::from(values, {rows, 3});
}

/// The bytes of each file with values.
std::vector<std::uintmax_t> sizes_of_values(const std::string& path) {
  std::vector<std::uintmax_t> sizes;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().filename().string().starts_with("values-")) sizes.push_back(entry.file_size());
  return sizes;
}

/// A random generator whose state cannot be written or read while it is broken.
class BreakableGenerator {
 public:
  using result_type = std::uint32_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() { return ++state; }

  friend std::ostream& operator<<(std::ostream& stream, const BreakableGenerator& generator) {
    if (generator.is_broken) throw Unavailable("a generator is broken");
    return stream << generator.state;
  }
  friend std::istream& operator>>(std::istream& stream, BreakableGenerator& generator) {
    if (generator.is_broken) throw Unavailable("a generator is broken");
    return stream >> generator.state;
  }

  std::uint32_t state = 0;
  bool is_broken = false;
};

}  // namespace

void check_saving_and_restoring(Bootstrap& worker, int devices, const std::string& folder) {
  const int workers = static_cast<int>(worker.workers().size());
  constexpr std::int64_t kRows = 10000;
  std::string path;
  {
    const auto strategy = strategy_of(worker, devices);
    const auto scope = strategy.scope();
    const Variable large({.initial_value = counting(kRows)});
    const Variable small({.initial_value = Tensor::from({1.0F, 2.0F})});
    const Variable total({.initial_value = Tensor::scalar(0.0F),
                          .synchronization = VariableSynchronization::kOnRead,
                          .aggregation = VariableAggregation::kSum});
    strategy.run([&] { total.assign_add(1.0F); });
    Checkpoint checkpoint(strategy);
    checkpoint.add("large", large);
    checkpoint.add("small", small);
    checkpoint.add("total", total);
    path = checkpoint.save(folder, 5);
  }
  EXPECT_THAT(verify_checkpoint(path), IsEmpty());
  const auto sizes = sizes_of_values(path);
  EXPECT_EQ(sizes.size(), static_cast<std::size_t>(workers));
  const double share = double(kRows) * 12 / workers;
  for (const std::uintmax_t size : sizes) EXPECT_NEAR(static_cast<double>(size), share, 1000);

  const auto strategy = strategy_of(worker, 1);
  const auto scope = strategy.scope();
  const Variable large({.initial_value = Tensor::zeros({kRows, 3}, DType::kFloat32)});
  const Variable small({.initial_value = Tensor::from({0.0F, 0.0F})});
  const Variable total({.initial_value = Tensor::scalar(0.0F),
                        .synchronization = VariableSynchronization::kOnRead,
                        .aggregation = VariableAggregation::kSum});
  Checkpoint checkpoint(strategy);
  checkpoint.add("large", large);
  checkpoint.add("small", small);
  checkpoint.add("total", total);
  checkpoint.restore(path).assert_consumed();
  EXPECT_TRUE(bitwise_equal(large.components().front(), counting(kRows)));
  EXPECT_TRUE(bitwise_equal(small.components().front(), Tensor::from({1.0F, 2.0F})));
  // The sum stays what it was, and is divided among one replica on each worker.
  EXPECT_EQ(total.components().front().item<float>(), static_cast<float>(devices));
  EXPECT_EQ(total.read().item<float>(), static_cast<float>(devices * workers));
}

void check_values_of_the_first_worker(Bootstrap& worker, const std::string& folder) {
  const auto strategy = strategy_of(worker, 1);
  std::int64_t number = 10 + worker.rank();
  std::string text(static_cast<std::size_t>(worker.rank() + 1), 'x');
  Checkpoint checkpoint(strategy);
  checkpoint.add("number", number);
  checkpoint.add("text", text);
  const std::string path = checkpoint.save(folder, 1);
  checkpoint.restore(path).assert_consumed();
  EXPECT_EQ(number, 10);
  EXPECT_EQ(text, "x");
}

void check_failure_of_one_worker(Bootstrap& worker, const std::string& folder) {
  const auto strategy = strategy_of(worker, 1);
  const auto scope = strategy.scope();
  const int last = static_cast<int>(worker.workers().size()) - 1;
  const Variable variable({.initial_value = counting(100)});
  Checkpoint checkpoint(strategy);
  checkpoint.add("v", variable);
  const std::string good = checkpoint.save(folder, 1);

  // The last worker alone cannot read.
  Checkpoint failing(strategy);
  failing.add("v", variable);
  const std::string path = worker.rank() == last ? folder + "/nowhere" : good;
  const auto text = message_of(ErrorCode::kUnavailable, [&] { failing.restore(path); });
  EXPECT_THAT(text, HasSubstr("nowhere"));
  if (last > 0) {
    EXPECT_THAT(text, HasSubstr("worker " + std::to_string(last) + " (host"));
  }

  // A worker that sees another folder cannot write its part.
  const std::string other = worker.rank() == last && last > 0 ? folder + "/elsewhere" : folder;
  if (last > 0) {
    const auto refusal = message_of(ErrorCode::kUnavailable, [&] { checkpoint.save(other, 2); });
    EXPECT_THAT(refusal, HasSubstr("worker " + std::to_string(last) + " (host"));
    EXPECT_THAT(refusal, HasSubstr("elsewhere/step-2"));
    EXPECT_FALSE(std::filesystem::exists(checkpoint::checkpoint_path(folder, 2)));
  }
  EXPECT_EQ(list_checkpoints(folder).size(), 1);
  // The workers can go on.
  checkpoint.save(folder, 3);
  checkpoint.restore(good).assert_consumed();
}

void check_saving_in_background(Bootstrap& worker, const std::string& folder) {
  const auto strategy = strategy_of(worker, 1);
  const auto scope = strategy.scope();
  const Variable variable({.initial_value = counting(100)});
  Checkpoint checkpoint(strategy);
  checkpoint.add("v", variable);
  for (const int step : {1, 2, 3}) {
    variable.assign(Tensor::full({100, 3}, DType::kFloat32, step));
    checkpoint.save_async(folder, step);
    variable.assign(counting(100));
    EXPECT_EQ(variable.read().rows(0, 1).bytes(), 12);  // calls of the program go on
    strategy.run([&] { variable.assign_add(Tensor::zeros({100, 3}, DType::kFloat32)); });
  }
  checkpoint.wait();
  for (const int step : {1, 2, 3}) {
    const std::string path = checkpoint::checkpoint_path(folder, step);
    EXPECT_THAT(verify_checkpoint(path), IsEmpty());
    checkpoint.restore(path).assert_consumed();
    EXPECT_TRUE(bitwise_equal(variable.read(), Tensor::full({100, 3}, DType::kFloat32, step)));
  }
}

void check_a_value_that_fails(Bootstrap& worker, const std::string& folder) {
  const auto strategy = strategy_of(worker, 1);
  const int last = static_cast<int>(worker.workers().size()) - 1;
  BreakableGenerator generator;
  Checkpoint checkpoint(strategy);
  checkpoint.add("generator", generator);
  const std::string good = checkpoint.save(folder, 1);
  const auto fails = [&](const auto& call) {
    generator.is_broken = worker.rank() == last;
    const auto text = message_of(ErrorCode::kUnavailable, call);
    EXPECT_THAT(text, HasSubstr("a generator is broken"));
    if (last > 0) {
      EXPECT_THAT(text, HasSubstr("worker " + std::to_string(last) + " (host"));
    }
    generator.is_broken = false;
    checkpoint.restore(good).assert_consumed();  // the workers can go on
  };
  fails([&] { checkpoint.save(folder, 2); });
  fails([&] { checkpoint.save_async(folder, 2); });
  fails([&] { checkpoint.restore(good); });
  checkpoint.save_async(folder, 2);
  checkpoint.wait();
  EXPECT_EQ(list_checkpoints(folder).size(), 2);
}

void check_loading_safetensors(Bootstrap& worker, int devices, const std::string& folder) {
  const auto strategy = strategy_of(worker, devices);
  const auto scope = strategy.scope();
  const int last = static_cast<int>(worker.workers().size()) - 1;
  const Variable table({.name = "table", .initial_value = Tensor::zeros({100, 3}, DType::kFloat32)});
  const Variable moving({.name = "moving",
                         .initial_value = Tensor::zeros({2}, DType::kFloat32),
                         .synchronization = VariableSynchronization::kOnRead,
                         .aggregation = VariableAggregation::kMean});
  const std::vector<Variable> variables{table, moving};
  const std::string path = folder + "/of-" + std::to_string(worker.rank());
  std::filesystem::create_directories(folder);
  const auto write = [&](float first) {
    const Tensor written = counting(100);
    written.span<float>()[0] = first;
    const std::string bytes =
        safetensors_file({{"table", written}, {"moving", Tensor::full({2}, DType::kBFloat16, 0.5)}});
    std::ofstream(path, std::ios::binary) << bytes;
  };
  const auto load = [&](const std::string& from) {
    load_safetensors(from, variables, {.convert = true, .timeout_seconds = 60}, {}, strategy);
  };
  const auto require = [&](const Tensor& expected, double mean) {
    for (const Tensor& component : table.components()) EXPECT_TRUE(bitwise_equal(component, expected));
    for (const Tensor& component : moving.components())
      EXPECT_TRUE(bitwise_equal(component, Tensor::full({2}, DType::kFloat32, mean)));
  };
  const Tensor zeros = Tensor::zeros({100, 3}, DType::kFloat32);
  if (last > 0) {
    write(worker.rank() == last ? 1.0F : 0.0F);
    const auto differ = message_of(ErrorCode::kInvalidArgument, [&] { load(path); });
    EXPECT_THAT(differ, ::testing::AllOf(HasSubstr("differ: worker "), HasSubstr("tensor 'table' float32"),
                                         HasSubstr(fmt::format("worker {} (host", last))));
    const bool is_last = worker.rank() == last;
    const auto missing =
        message_of(ErrorCode::kUnavailable, [&] { load(is_last ? folder + "/nowhere" : path); });
    EXPECT_THAT(missing,
                ::testing::AllOf(HasSubstr(fmt::format("worker {} (host", last)), HasSubstr("nowhere")));
    require(zeros, 0);
  }
  write(0);
  load(path);
  require(counting(100), 0.5);
}

void check_other_values(Bootstrap& worker, const std::string& folder) {
  if (worker.workers().size() == 1) return;
  const auto strategy = strategy_of(worker, 1);
  float a = 1;
  Checkpoint checkpoint(strategy);
  checkpoint.add("a", a);
  checkpoint.add(worker.rank() == 1 ? "odd" : "even", a);
  const auto text = message_of(ErrorCode::kInvalidArgument, [&] { checkpoint.save(folder, 1); });
  EXPECT_THAT(text, ::testing::AllOf(HasSubstr("worker 0 (host"), HasSubstr("has 'even'"),
                                     HasSubstr("worker 1 (host"), HasSubstr("has 'odd'")));
}

// The sums of the replicas, which do not add up exactly, decide about the last bits of what follows.
void check_metrics_in_checkpoints(Bootstrap& worker, const std::string& folder) {
  const auto strategy = strategy_of(worker, 2);
  const auto scope = strategy.scope();
  const auto add = [&](const Mean& mean, double factor) {
    strategy.run([&](ReplicaContext& replica) {
      mean.update_state(Tensor::scalar(factor * 0.1 * (replica.replica_id_in_sync_group() + 1)));
    });
  };
  const Mean mean;
  add(mean, 1);
  Checkpoint checkpoint(strategy);
  checkpoint.add("mean", mean);
  const std::string saved = checkpoint.save(folder, 1);
  add(mean, 3);
  const double expected = mean.result().item<double>();

  const Mean other;
  Checkpoint restoring(strategy);
  restoring.add("mean", other);
  restoring.restore(saved).assert_consumed();
  add(other, 3);
  EXPECT_EQ(other.result().item<double>(), expected);
}

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
          for (int number = steps_; float& element : gradient.span<float>())
            element = static_cast<float>(number++ % 101) / 50 - 1;
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
