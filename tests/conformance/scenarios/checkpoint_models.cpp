// A linear model and its optimizer, which are saved after an epoch and restored for a second one.
#include <memory>
#include <span>
#include <utility>

#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>

#include "checkpoints.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kRate = "a learning rate is an option";
constexpr std::string_view kAnyStrategy = "an optimizer is restored under every strategy";

constexpr int kExamples = 12;
constexpr int kBatch = 6;

struct Example {
  float x[2];
  float y;
};

Example example(int i) {
  const float first = static_cast<float>((i * 3) % 7) / 4 - 0.5F;
  const float second = static_cast<float>((i * 5) % 11) / 8 - 0.5F;
  return {{first, second}, 2 * first - second + 0.5F + static_cast<float>(i % 3 - 1) / 10};
}

/// Gradients of a part of a batch, and the sum of its squared errors.
struct Part {
  float kernel[2] = {0, 0};
  float bias = 0;
  float squares = 0;
};

/// The optimizer that a line names, by its options.
std::unique_ptr<Optimizer> optimizer_of(const Record& record) {
  if (record.arguments.at("optimizer").get<std::string>().starts_with("Adam"))
    return std::make_unique<Adam>(AdamOptions{.learning_rate = 0.05});
  return std::make_unique<Momentum>(MomentumOptions{.learning_rate = 0.1, .momentum = 0.9});
}

class FittedModel {
 public:
  FittedModel(Strategy strategy, const Record& record)
      : strategy_(std::move(strategy)),
        scope_(strategy_.scope()),
        variables_{Variable({.name = "kernel", .initial_value = tensor({0.5, -0.25}, {2, 1})}),
                   Variable({.name = "bias", .initial_value = vector({0.1})})},
        optimizer_(optimizer_of(record)) {
    checkpoint_.add("kernel", variables_[0]);
    checkpoint_.add("bias", variables_[1]);
    checkpoint_.add("optimizer", *optimizer_, variables_);
  }

  [[nodiscard]] Checkpoint& checkpoint() { return checkpoint_; }
  [[nodiscard]] const Optimizer& optimizer() const { return *optimizer_; }
  [[nodiscard]] const std::vector<Variable>& variables() const { return variables_; }

  [[nodiscard]] Json weights() const { return {show(variables_[0].read()), show(variables_[1].read())}; }

  /// One epoch; returns the mean of the squared errors.
  float fit() {
    float squares = 0;
    for (int begin = 0; begin < kExamples; begin += kBatch) {
      const auto sums = strategy_.run([&](ReplicaContext& replica) {
        const Part part = part_of(replica, begin);
        optimizer_->apply_gradients({{tensor({part.kernel[0], part.kernel[1]}, {2, 1}), variables_[0]},
                                     {vector({part.bias}), variables_[1]}});
        return Tensor::scalar(part.squares);
      });
      squares += strategy_.reduce(ReduceOp::kSum, sums).item<float>();
    }
    return squares / kExamples;
  }

 private:
  /// The replica's share of the batch that begins with this example.
  [[nodiscard]] Part part_of(ReplicaContext& replica, int begin) const {
    const int share = kBatch / replica.num_replicas_in_sync();
    const Tensor kernel = variables_[0].read();
    const std::span<const float> w = kernel.span<float>();
    const float b = variables_[1].read().span<float>()[0];
    Part part;
    for (int i = 0; i < share; ++i) {
      const Example one = example(begin + share * replica.replica_id_in_sync_group() + i);
      const float error = one.x[0] * w[0] + one.x[1] * w[1] + b - one.y;
      part.kernel[0] += 2 * error * one.x[0] / kBatch;
      part.kernel[1] += 2 * error * one.x[1] / kBatch;
      part.bias += 2 * error / kBatch;
      part.squares += error * error;
    }
    return part;
  }

  Strategy strategy_;
  StrategyScope scope_;
  std::vector<Variable> variables_;
  std::unique_ptr<Optimizer> optimizer_;
  Checkpoint checkpoint_;
};

std::string save(const CheckpointFolder& folder, const std::string& strategy, const Record& record) {
  FittedModel model(strategy_named(strategy), record);
  model.fit();
  return model.checkpoint().save(folder.path(), 1);
}

/// As the original calls them. They are those of a new model, which the checkpoint was restored into.
Json slots_of(const FittedModel& model) {
  const bool is_adam = model.optimizer().slot_names().size() == 2;
  const std::string prefix = is_adam ? "sequential_1_dense_1" : "sequential_dense";
  Json slots{{"iteration", model.optimizer().iterations()}};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string name = fmt::format("{}_{}", prefix, i == 0 ? "kernel" : "bias");
    const std::vector<Variable> of_variable = model.optimizer().slots(model.variables()[i]);
    slots[name + "_momentum"] = show(of_variable.at(0).read());
    if (is_adam) slots[name + "_velocity"] = show(of_variable.at(1).read());
  }
  return slots;
}

Json saved_fit(const Record& record) {
  const CheckpointFolder folder;
  const std::string path = save(folder, strategy_of(record), record);
  FittedModel model(strategy_named(strategy_of(record)), record);
  model.checkpoint().restore(path).assert_consumed();
  return {{"weights", model.weights()},
          {"iterations", model.optimizer().iterations()},
          {"slots", slots_of(model)}};
}

Json restored_fit(const Record& record) {
  const CheckpointFolder folder;
  const std::string path = save(folder, record.arguments.at("source").get<std::string>(), record);
  FittedModel model(strategy_named(strategy_of(record)), record);
  model.checkpoint().restore(path).assert_consumed();
  Json outcome{{"weights_restored", model.weights()}, {"iterations", model.optimizer().iterations()}};
  outcome["then_fit"]["loss"] = Json::array({model.fit()});
  outcome["then_fit"]["weights"] = model.weights();
  return outcome;
}

Json without_rate(const Record& record) {
  Json outcome = record.outcome;
  outcome.at("slots").erase("learning_rate");
  return outcome;
}

/// What the lines of the default strategy have.
Json as_under_one_device(const Record& record) {
  if (record.arguments.at("optimizer").get<std::string>().starts_with("Adam")) {
    return Json::parse(R"({"weights_restored": [[[0.599154532], [-0.191548944]], [0.199781507]],
        "iterations": 2, "then_fit": {"loss": [0.779996157],
        "weights": [[[0.695206106], [-0.161715835]], [0.297058612]]}})");
  }
  return Json::parse(R"({"weights_restored": [[[0.776097894], [-0.172526181]], [0.479767323]],
      "iterations": 2, "then_fit": {"loss": [0.294621259],
      "weights": [[[1.25332785], [-0.118997946]], [0.999850273]]}})");
}

}  // namespace

std::vector<Family> checkpoint_model_families() {
  return {{{"w2/checkpoint/*/model_save_*"}, saved_fit, {{"*", kRate, without_rate}}},
          {{"w2/checkpoint/*/model_*_from_*"},
           restored_fit,
           {{"w2/checkpoint/mirrored*/*", kAnyStrategy, as_under_one_device}}}};
}

}  // namespace cohort::conformance
