// Recorded lines of fit, evaluate and predict.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/losses/regression_losses.h>
#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/metrics/loss_metrics.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/trainer.h>

#include "../scenarios/checkpoints.h"
#include "families.h"
#include "fitting.h"
#include "recorded_fits.h"
#include "recorded_optimizers.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kMeanIsClipped = "limits are those of the mean gradient";
constexpr std::string_view kSums = "the loss of a sum is the mean over steps";
constexpr std::string_view kOneLoss = "a training has one loss for each step";
constexpr std::string_view kAtLeastOne = "steps and batches are at least one";

LossReduction reduction_of(const Json& input) {
  const std::string loss = input.value("loss", "mse");
  if (loss.find("=mean_with") != std::string::npos) return LossReduction::kMeanWithSampleWeight;
  if (loss.find("=none") != std::string::npos) return LossReduction::kNone;
  return loss.find("=sum)") != std::string::npos ? LossReduction::kSum : LossReduction::kSumOverBatchSize;
}

std::vector<Metric> metrics_of(const Json& names, const std::string& prefix) {
  std::vector<Metric> metrics;
  for (const std::string name : names) {
    if (name == "mae") metrics.push_back(metrics::mean_of(losses::mean_absolute_error(), "mae"));
    if (name == "mse") metrics.push_back(metrics::mean_of(losses::mean_squared_error(), "mse"));
    if (name == "RootMeanSquaredError") metrics.push_back(metrics::root_mean_squared_error());
    if (name == "cosine_similarity") metrics.push_back(metrics::cosine_similarity());
    if (name == "accuracy") metrics.push_back(metrics::sparse_categorical_accuracy(prefix + "accuracy"));
  }
  return metrics;
}

Json show_logs(const Logs& logs) {
  Json shown = Json::object();
  for (const auto& [name, value] : logs) shown[name] = show(value);
  return shown;
}

Json show_history(const History& history) {
  Json shown = Json::object();
  for (const History::Epoch& epoch : history.epochs())
    for (const auto& [name, value] : epoch.logs) shown[name].push_back(show(value));
  return shown;
}

/// The program of a line, for batches of one kind.
template <class Batch>
class Program {
 public:
  Program(const Json& input, const Strategy& strategy)
      : input_(input),
        strategy_(strategy),
        model_(model_of(input)),
        optimizer_(optimizer_in_words(input.value("optimizer", "SGD(0.1)"))),
        trainer_(strategy, model_, *optimizer_,
                 {.metrics = metrics_of(input.value("metrics", Json{"mae"}), ""),
                  .weighted_metrics = metrics_of(input.value("weighted_metrics", Json::array()), "weighted_"),
                  .reduction = reduction_of(input)}) {}

  [[nodiscard]] Dataset<Batch> batches(int count, const std::string& weights) const {
    const auto batch = input_.value("batch_size", 4);
    const bool drops = input_.value("input", "").find("drop") != std::string::npos;
    return examples(count, weights).batch(batch, drops);
  }

  [[nodiscard]] Json fit() {
    FitOptions<Batch> options{.epochs = input_.value("epochs", 2),
                              .initial_epoch = input_.value("initial_epoch", 0)};
    if (input_.contains("steps_per_epoch")) options.steps_per_epoch = input_.at("steps_per_epoch").get<int>();
    if (input_.contains("validation_steps"))
      options.validation_steps = input_.at("validation_steps").get<int>();
    set_validation(options);
    const Json class_weight = input_.value("class_weight", Json::object());
    for (const auto& [label, weight] : class_weight.items()) options.class_weight[std::stoi(label)] = weight;
    const History history = trainer_.fit(training_data(), options);
    if (optimizer_->update_options().average) optimizer_->swap_averages(model_.parameters());
    Json epochs = Json::array();
    for (const History::Epoch& epoch : history.epochs()) epochs.push_back(epoch.number);
    if (is_of_classes()) return {{"history", show_history(history)}, {"weights", weights()}};
    const TrainingParams& params = trainer_.training().params();
    return {{"history", show_history(history)},
            {"epochs", epochs},
            {"params", {{"verbose", 0}, {"epochs", params.epochs}, {"steps", params.steps.value_or(0)}}},
            {"weights", weights()},
            {"iterations", optimizer_->iterations()}};
  }

  [[nodiscard]] Trainer<Batch>& trainer() { return trainer_; }
  [[nodiscard]] Json weights() const {
    return {show(model_.parameters()[0].read()), show(model_.parameters()[1].read())};
  }

 private:
  [[nodiscard]] bool is_of_classes() const { return input_.value("loss", "").starts_with("Sparse"); }

  [[nodiscard]] Dataset<Batch> examples(int count, const std::string& weights) const {
    if constexpr (std::is_same_v<Batch, Examples>)
      return Dataset<Batch>::from_tensor_slices(examples_of(input_, count));
    else
      return Dataset<Batch>::from_tensor_slices(weighted_examples_of(input_, count, weights));
  }

  [[nodiscard]] TrainingData<Batch> training_data() const {
    const int count = input_.at("n");
    auto data = input_.contains("validation_split")
                    ? examples(count, "").take(7).batch(input_.at("batch_size"))
                    : batches(count, input_.value("sample_weight", ""));
    const std::string how = input_.value("input", "");
    if (how == "repeat") return data.repeat();
    if (how.find("already distributed") != std::string::npos) return strategy_.distribute_dataset(data);
    return data;
  }

  void set_validation(FitOptions<Batch>& options) const {
    if (input_.contains("validation_split"))
      options.validation_data = examples(input_.at("n"), "").skip(7).batch(input_.at("batch_size"));
    if (input_.contains("validation_data"))
      options.validation_data =
          batches(7, input_.at("validation_data") == "data(7), weights i%2" ? "i%2" : "");
    const Json freq = input_.value("validation_freq", Json(1));
    if (freq.is_array())
      options.validation_epochs = freq.get<std::vector<int>>();
    else
      options.validation_freq = freq;
  }

  const Json& input_;
  Strategy strategy_;
  RecordedModel model_;
  std::unique_ptr<Optimizer> optimizer_;
  Trainer<Batch> trainer_;
};

Json fit_under(const Json& input, const Strategy& strategy) {
  const auto scope = strategy.scope();
  const bool has_both = input.contains("class_weight") && input.contains("sample_weight");
  if (input.contains("class_weight") && !has_both) return Program<Examples>(input, strategy).fit();
  return Program<WeightedExamples>(input, strategy).fit();
}

Json fitted_as_recorded(const Record& record) {
  return fit_under(record.arguments, strategy_named(strategy_of(record)));
}

/// As with one replica, of which no part of a batch is uneven.
Json fitted_by_one(const Record& record) { return fit_under(record.arguments, get_strategy()); }

Json evaluated_under(const Record& record, const Strategy& strategy) {
  const Json& input = record.arguments;
  const auto scope = strategy.scope();
  Program<WeightedExamples> program(input, strategy);
  const std::string op = input.at("op");
  const auto data = program.batches(input.at("n"), op == "evaluate(sample_weight=i%3)" ? "i%3" : "");
  EvaluateOptions options;
  if (op == "evaluate(steps=1)") options.steps = 1;
  const Logs logs = program.trainer().evaluate(data, options);
  if (op != "evaluate") return show_logs(logs);
  return {show(*logs.find("loss")), show(*logs.find("mae"))};
}

Json evaluated(const Record& record) { return evaluated_under(record, strategy_named(strategy_of(record))); }
Json evaluated_by_one(const Record& record) { return evaluated_under(record, get_strategy()); }

Json predicted_under(const Record& record, const Strategy& strategy) {
  const Json& input = record.arguments;
  const auto scope = strategy.scope();
  Program<WeightedExamples> program(input, strategy);
  EvaluateOptions options;
  if (input.at("op") == "predict(steps=2)") options.steps = 2;
  return show(program.trainer().predict(program.batches(input.value("n", 4), ""), options));
}

Json predicted(const Record& record) { return predicted_under(record, strategy_named(strategy_of(record))); }
Json predicted_by_one(const Record& record) { return predicted_under(record, get_strategy()); }

/// Batches of four rows of the first eight examples, each a dataset of its own.
Json on_batches(const Record& record) {
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  Program<WeightedExamples> program(record.arguments, strategy);
  const auto data = program.batches(8, "");
  const auto both = [](const Logs& logs) { return Json{show(*logs.find("loss")), show(*logs.find("mae"))}; };
  if (record.id.ends_with("test_on_batch"))
    return {both(program.trainer().evaluate(data.take(1))), both(program.trainer().evaluate(data.skip(1)))};
  const auto train = [&](const Dataset<WeightedExamples>& batch) {
    return program.trainer().fit(batch).epochs()[0].logs;
  };
  const Json first = both(train(data.take(1)));
  const Json second = both(train(data.skip(1)));
  return {{"returned", {first, second, show_logs(train(data.take(1)))}}, {"weights", program.weights()}};
}

/// The loop by hand of the original's guide.
Json looped(const Record& record) {
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const RecordedModel model = model_of(record.arguments);
  Sgd optimizer({.learning_rate = 0.1});
  Json losses = Json::array();
  const auto step = [&](const Examples& mine) {
    const Tensor outputs = model.forward(mine);
    std::vector<GradientAndVariable> gradients = model.gradients(mine, outputs, {});
    for (const GradientAndVariable& pair : gradients)
      for (float& value : pair.gradient.span<float>()) value /= 4;
    optimizer.apply_gradients(gradients);
    double sum = 0;
    for (const float loss : model.loss(mine, outputs).span<float>()) sum += static_cast<double>(loss) / 4;
    return sum;
  };
  const auto data = Dataset<Examples>::from_tensor_slices(examples_of(record.arguments, 8)).batch(4);
  for (const auto& batch : strategy.distribute_dataset(data))
    losses.push_back(show(strategy.reduce(ReduceOp::kSum, strategy.run(step, batch))));
  return {{"losses", losses},
          {"w", show(model.parameters()[0].read())},
          {"b", show(model.parameters()[1].read())}};
}

/// What the lines of mistakes do, with a batch of all their examples.
Json mistaken(const Record& record) {
  const std::string name = record.arguments.at("case");
  Json input = record.arguments;
  input["batch_size"] = 32;
  input["epochs"] = 1;
  if (name == "class_weight_float_y") input["class_weight"] = {{"0", 1.0}};
  if (name == "steps_0") input["steps_per_epoch"] = 0;
  if (name == "batch_size_0") input["batch_size"] = 0;
  if (name == "empty") input["n"] = 0;
  if (name == "validation_steps_no_data") input["validation_steps"] = 3;
  return fit_under(input, strategy_named(strategy_of(record))).at("history");
}

Json mistaken_data(const Record& record) {
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const RecordedModel model = model_of(record.arguments);
  Sgd optimizer;
  Trainer<Examples> trainer(strategy, model, optimizer);
  auto [inputs, labels] = examples_of(record.arguments, 8);
  if (record.id.ends_with("len_mismatch")) labels = labels.rows(0, 5);
  const auto data = Dataset<Examples>::from_tensor_slices({inputs, labels});
  return show_history(trainer.fit(record.id.ends_with("unbatched_ds") ? data : data.batch(8)));
}

/// Models and trainers made in other scopes than the strategy's.
Json out_of_scope(const Record& record) {
  const Strategy strategy = strategy_named(strategy_of(record));
  const std::string name = record.arguments.at("case");
  std::optional<StrategyScope> scope;
  if (name != "model_outside_scope") scope.emplace(strategy);
  const RecordedModel model = model_of(record.arguments);
  Sgd optimizer;
  scope.reset();
  Trainer<Examples> trainer(strategy, model, optimizer);
  const OneDeviceStrategy other;
  if (name == "other_strategy") scope.emplace(other);
  trainer.fit(Dataset<Examples>::from_tensor_slices(examples_of(record.arguments, 8)).batch(8));
  return Json{0};
}

/// The line's outcome with these losses.
template <int kCase>
Json with_losses(const Record& record) {
  Json outcome = record.outcome;
  outcome["history"]["loss"] = kCase == 0 ? Json{2.3590625, 2.14859375} : Json{1.22066321, 1.09062721};
  return outcome;
}

Json refused_arguments(const Record& /*record*/) { return an_error(); }

/// What two epochs of six steps, or of `steps`, come to by the formulas in float64.
FamilyDifference computed(std::string_view pattern, std::string_view why, const Json& losses,
                          const Json& errors, const Json& weights, int steps = 6) {
  Json outcome{{"epochs", {0, 1}},
               {"history", {{"loss", losses}, {"mae", errors}}},
               {"iterations", steps},
               {"params", {{"epochs", 2}, {"steps", 3}, {"verbose", 0}}},
               {"weights", {{{weights[0]}, {weights[1]}}, {weights[2]}}}};
  return {pattern, why, [outcome](const Record& /*record*/) { return outcome; }};
}

std::vector<FamilyDifference> by_optimizers() {
  return {computed("w2/fit/*/opt_adamw", kAdamInDoubles, {0.778451952, 0.488554444},
                   {0.672479888, 0.502356397}, {0.769108562, -0.086116779, 0.375064727}),
          computed("w2/fit/*/opt_global_clipnorm", kMeanIsClipped, {0.847476570, 0.711132902},
                   {0.706873837, 0.638697678}, {0.601432640, -0.209943577, 0.233793069}),
          computed("w2/fit/*/opt_clipnorm", kMeanIsClipped, {0.829114234, 0.644096235},
                   {0.698419651, 0.602435403}, {0.651826553, -0.191186054, 0.28}),
          computed("w2/fit/*/opt_ema_overwrite", kInReplicas, {0.703079273, 0.358404609},
                   {0.632842609, 0.410114679}, {0.859671199, -0.159247643, 0.509834034}),
          computed("w2/fit/*/opt_accum2", kInReplicas, {0.819593329, 0.532004254}, {0.698713867, 0.529848677},
                   {0.769055929, -0.175428353, 0.431789417}, 3)};
}

/// Lines of fit in which the original fails, or weighs replicas in place of examples.
std::vector<FamilyDifference> by_examples() {
  std::vector<FamilyDifference> differences = by_optimizers();
  differences.insert(differences.end(), {{"w2/fit/*/loss_MeanAbsoluteError_sum", kSums, with_losses<0>},
                                         {"w2/fit/*/loss_Huber_sum", kSums, with_losses<1>},
                                         {"w2/fit/*/loss_none_reduction", kOneLoss, refused_arguments}});
  for (const std::string_view pattern : {"w2/fit/mirrored2/n9_b4",
                                         "w2/fit/mirrored2/n5_b5",
                                         "w2/fit/mirrored2/n7_b3",
                                         "w2/fit/mirrored2/n1_b4",
                                         "w2/fit/mirrored2/dataset_dist_n9_b4",
                                         "w2/fit/mirrored2/loss_callable_scalar",
                                         "w2/fit/mirrored2/sample_weight_mean_with",
                                         "w2/fit/mirrored2/val_steps1",
                                         "w2/fit/mirrored2/val_split",
                                         "w2/fit/mirrored2/steps_per_execution5",
                                         "w2/fit/mirrored2/class_b3",
                                         "w2/fit/mirrored2/n13_b4_graph",
                                         "w2/fit/mirrored2/dataset_keep_n9_b4_graph",
                                         "w2/fit/mirrored2/warm_*",
                                         "w2/fit/mirrored3/n16_b4",
                                         "w2/fit/mirrored3/n16_b8",
                                         "w2/fit/mirrored3/n9_b4",
                                         "w2/fit/mirrored3/n11_b6",
                                         "w2/fit/mirrored3/n5_b5",
                                         "w2/fit/mirrored3/n7_b3",
                                         "w2/fit/mirrored3/n1_b4",
                                         "w2/fit/mirrored3/n13_b4",
                                         "w2/fit/mirrored3/loss_*",
                                         "w2/fit/mirrored3/sample_weight"})
    differences.push_back({pattern, kExamples, fitted_by_one});
  return differences;
}

}  // namespace

std::vector<Family> fit_families() {
  return {{{"w2/fit/*/evaluate_*"},
           evaluated,
           {{"w2/fit/mirrored2/evaluate_n5_b4", kExamples, evaluated_by_one},
            {"w2/fit/mirrored2/evaluate_n3_b8", kExamples, evaluated_by_one},
            {"w2/fit/mirrored3/evaluate_*", kExamples, evaluated_by_one}}},
          {{"w2/fit/*/test_on_batch", "w2/fit/*/train_on_batch"}, on_batches, {}},
          {{"w2/fit/*/predict_*"},
           predicted,
           {{"w2/fit/mirrored2/predict_on_batch", "a prediction for each example, once", predicted_by_one}}},
          {{"w2/fit/*/custom_loop_equiv"}, looped, {}},
          {{"w2/fit/*/error_len_mismatch", "w2/fit/*/error_unbatched_ds"}, mistaken_data, {}},
          {{"w2/fit/*/error_model_outside_scope", "w2/fit/*/error_compile_outside_scope",
            "w2/fit/*/error_other_strategy"},
           out_of_scope,
           {}},
          {{"w2/fit/*/error_*"},
           mistaken,
           {{"w2/fit/*/error_batch_size_0", kAtLeastOne, refused_arguments},
            {"w2/fit/*/error_steps_0", kAtLeastOne, refused_arguments}}},
          {{"w2/fit/*"}, fitted_as_recorded, by_examples()}};
}

}  // namespace cohort::conformance
