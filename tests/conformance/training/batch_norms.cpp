// Recorded lines of batch normalization.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <cohort/train/normalization/sync_batch_norm.h>
#include <cohort/train/optimizers/sgd.h>

#include "../scenarios/checkpoints.h"
#include "families.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kNoRows = "an empty batch changes no statistics";
constexpr std::string_view kNoDivergence = "statistics never differ between mirrors";
constexpr std::string_view kFloat64 = "batches are normalized in float64";
constexpr std::string_view kUnevenBatches = "batches may be uneven from the first one on";

SyncBatchNormOptions options_of(const Record& record) {
  const Json& input = record.arguments;
  const bool is_synchronized = input.value("synchronized", true);
  return {.momentum = input.value("momentum", 0.99),
          .center = input.value("center", true),
          .scale = input.value("scale", true),
          .statistics = is_synchronized ? BatchStatistics::kAllReplicas : BatchStatistics::kOwnReplica};
}

/// x[i][j] = ((7i + 3j) % 11)/2 - 2, of rows from `first` on.
Tensor rows_from(std::int64_t first, std::int64_t rows) {
  const Tensor tensor = Tensor::uninitialized({rows, 3}, DType::kFloat32);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      tensor.row(i).span<float>()[static_cast<std::size_t>(j)] =
          static_cast<float>((7 * (first + i) + 3 * j) % 11) / 2 - 2;
  return tensor;
}

/// Of each replica in a step.
std::vector<std::int64_t> rows_of_replicas(const Json& input, int replicas) {
  if (input.contains("rows")) return input.at("rows").get<std::vector<std::int64_t>>();
  return std::vector<std::int64_t>(static_cast<std::size_t>(replicas), input.at("rows_per_replica"));
}

/// The gradients of the sum of y y [1, 2, 3], after y.
Json with_gradients(const SyncBatchNorm& norm, const Tensor& input, const NormalizedBatch& batch) {
  const Tensor slope = batch.output.clone();
  for (std::size_t i = 0; i < slope.elements(); ++i)
    slope.span<float>()[i] *= 2 * (1 + static_cast<float>(i % 3));
  const BatchNormGradients by = norm.backward(slope, input, batch.moments);
  return {show(batch.output), {show(by.input), show(by.gamma), show(by.beta)}};
}

Json statistics_of(const Record& record, const Variable& variable) {
  const bool is_plain = record.id.starts_with("w2/batchnorm/default/");
  if (is_plain) return {{"Variable", show(variable.components()[0])}};
  return {{"MirroredVariable", show_components(variable)}};
}

Json normalized(const Record& record) {
  const Json& input = record.arguments;
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const SyncBatchNorm norm(3, options_of(record));
  if (norm.gamma()) norm.gamma()->assign(vector({1, 2, 0.5}));
  if (norm.beta()) norm.beta()->assign(vector({0, 1, -1}));
  const bool with_slopes = input.contains("loss");
  const std::vector<std::int64_t> rows = rows_of_replicas(input, strategy.num_replicas_in_sync());
  const std::size_t steps = record.outcome.at("outputs[step][replica]").size();
  std::int64_t next = 0;
  Json outputs = Json::array();
  for (std::size_t step = 0; step < steps; ++step) {
    const auto of_step = strategy.run([&](ReplicaContext& replica) {
      const auto id = static_cast<std::size_t>(replica.replica_id_in_sync_group());
      std::int64_t first = next;
      for (std::size_t before = 0; before < id; ++before) first += rows[before];
      const Tensor own = rows_from(first, rows[id]);
      if (!input.value("training", true)) return show(norm.infer(own));
      const NormalizedBatch batch = norm.forward(own);
      return with_slopes ? with_gradients(norm, own, batch) : show(batch.output);
    });
    for (const std::int64_t own : rows) next += own;
    outputs.push_back(Json(of_step.components()));
  }
  return {{"outputs[step][replica]", outputs},
          {"moving_mean", statistics_of(record, norm.moving_mean())},
          {"moving_variance", statistics_of(record, norm.moving_variance())}};
}

/// As recorded, but with what the statistics begin with where they became NaN or were drawn to zero.
Json without_update(const Record& record) {
  Json outcome = record.outcome;
  const bool for_all = record.id.ends_with("all_empty");
  for (const auto& [name, beginning] : {std::pair("moving_mean", 0.0), std::pair("moving_variance", 1.0)}) {
    for (Json& components : outcome.at(name)) {
      const auto reset = [&, value = beginning](Json& numbers) {
        if (for_all || numbers.at(0) == "nan") numbers = {value, value, value};
      };
      if (!components.at(0).is_array()) reset(components);
      for (Json& component : components)
        if (component.is_array()) reset(component);
    }
  }
  return outcome;
}

/// What becomes of the recorded examples in `fit`.
class Model {
 public:
  Model(Strategy strategy, const Record& record)
      : strategy_(std::move(strategy)),
        scope_(strategy_.scope()),
        norm_(2, with_momentum(options_of(record))),
        kernel_({.name = "kernel", .initial_value = tensor({0.5, -0.25}, {2, 1})}),
        bias_({.name = "bias", .initial_value = vector({0.1})}) {}

  /// The mean of the squared errors of an epoch.
  float fit() {
    float squares = 0;
    for (int begin = 0; begin < kExamples; begin += kBatch) {
      const int end = std::min(begin + kBatch, kExamples);
      const auto sums = strategy_.run([&](ReplicaContext& replica) { return step(replica, begin, end); });
      squares += strategy_.reduce(ReduceOp::kSum, sums).item<float>();
    }
    return squares / kExamples;
  }

  [[nodiscard]] float evaluate() const {
    const Tensor outputs = norm_.infer(examples(0, kExamples));
    float squares = 0;
    for (int i = 0; i < kExamples; ++i) squares += error(outputs, i, i) * error(outputs, i, i);
    return squares / kExamples;
  }

  [[nodiscard]] Json weights() const {
    return {
        show(norm_.gamma()->read()),          show(norm_.beta()->read()), show(norm_.moving_mean().read()),
        show(norm_.moving_variance().read()), show(kernel_.read()),       show(bias_.read())};
  }

 private:
  static constexpr int kExamples = 10;
  static constexpr int kBatch = 4;

  static SyncBatchNormOptions with_momentum(SyncBatchNormOptions options) {
    options.momentum = 0.9;
    return options;
  }

  static Tensor examples(int begin, int end) {
    Tensor inputs = Tensor::uninitialized({end - begin, 2}, DType::kFloat32);
    for (int i = begin; i < end; ++i) {
      inputs.row(i - begin).span<float>()[0] = static_cast<float>((i * 3) % 7) / 4 - 0.5F;
      inputs.row(i - begin).span<float>()[1] = static_cast<float>((i * 5) % 11) / 8 - 0.5F;
    }
    return inputs;
  }

  /// Of example `i`, whose normalized input is row `row`.
  [[nodiscard]] float error(const Tensor& outputs, int row, int i) const {
    const Tensor example = examples(i, i + 1);
    const float target =
        2 * example.span<float>()[0] - example.span<float>()[1] + 0.5F + static_cast<float>(i % 3 - 1) / 10;
    const Tensor kernel = kernel_.read();
    const Tensor normal = outputs.row(row);
    return normal.span<float>()[0] * kernel.span<float>()[0] +
           normal.span<float>()[1] * kernel.span<float>()[1] + bias_.read().span<float>()[0] - target;
  }

  /// A replica's part of examples `begin` to `end-1`; returns the sum of its squared errors.
  Tensor step(ReplicaContext& replica, int begin, int end) {
    const int count = end - begin;
    const int id = replica.replica_id_in_sync_group();
    const int replicas = replica.num_replicas_in_sync();
    const int first = begin + count * id / replicas;
    const int last = begin + count * (id + 1) / replicas;
    const Tensor inputs = examples(first, last);
    const NormalizedBatch batch = norm_.forward(inputs);
    const Tensor slopes = Tensor::uninitialized(inputs.shape(), DType::kFloat32);
    const Tensor kernel = kernel_.read();
    Tensor by_kernel = Tensor::zeros({2, 1}, DType::kFloat32);
    float by_bias = 0;
    float squares = 0;
    for (int i = first; i < last; ++i) {
      const float wrong = error(batch.output, i - first, i);
      const float slope = 2 * wrong / static_cast<float>(count);
      for (std::size_t j = 0; j < 2; ++j) {
        slopes.row(i - first).span<float>()[j] = slope * kernel.span<float>()[j];
        by_kernel.span<float>()[j] += slope * batch.output.row(i - first).span<float>()[j];
      }
      by_bias += slope;
      squares += wrong * wrong;
    }
    const BatchNormGradients by = norm_.backward(slopes, inputs, batch.moments);
    sgd_.apply_gradients({{by.gamma, *norm_.gamma()},
                          {by.beta, *norm_.beta()},
                          {by_kernel, kernel_},
                          {Tensor::from({by_bias}), bias_}});
    return Tensor::scalar(squares);
  }

  Strategy strategy_;
  StrategyScope scope_;
  SyncBatchNorm norm_;
  Variable kernel_;
  Variable bias_;
  Sgd sgd_{{.learning_rate = 0.1}};
};

Json fitted(const Record& record) {
  Model model(strategy_named(strategy_of(record)), record);
  Json outcome;
  outcome["history"]["loss"] = Json::array({model.fit(), model.fit()});
  outcome["weights"] = model.weights();
  outcome["evaluate"] = model.evaluate();
  return outcome;
}

Json aggregations(const Record& record) {
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const SyncBatchNorm norm(2);
  Json list = Json::array();
  for (const Variable& variable : {*norm.gamma(), *norm.beta(), norm.moving_mean(), norm.moving_variance()}) {
    const std::string name = variable.name();
    list.push_back({name.substr(name.find('/') + 1), variable.trainable(),
                    std::string(to_string(variable.aggregation()))});
  }
  return list;
}

/// Three replicas that normalize by their own rows, as a program in float64 has it.
Json of_three_replicas(const Record& /*record*/) {
  return Json::parse(R"({"history": {"loss": [1.0511378008, 0.6559727311]}, "evaluate": 0.2600607353,
      "weights": [[1.05788191, 0.976805599], [0.368078666, -0.122945764], [0.112186417, 0.033899833],
                  [0.59763225, 0.586853016], [[0.679340616], [-0.17516507]], [0.7444292465]]})");
}

/// `ours`, where it is as close to what was recorded as float32 lets the original be.
Json nearby(const Json& ours, const Json& recorded) {
  if (ours.is_number() && recorded.is_number())
    return std::abs(ours.get<double>() - recorded.get<double>()) <= 5e-6 ? ours : recorded;
  Json result = recorded;
  if (ours.type() != recorded.type() || ours.size() != recorded.size()) return result;
  if (recorded.is_array())
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = nearby(ours[i], recorded[i]);
  if (recorded.is_object())
    for (const auto& [key, value] : recorded.items()) result[key] = nearby(ours.value(key, Json()), value);
  return result;
}

Json without_rounding(const Record& record) { return nearby(normalized(record), record.outcome); }

Json with_means(const Record& /*record*/) {
  return Json::parse(R"([["gamma", true, "none"], ["beta", true, "none"], ["moving_mean", false, "mean"],
                         ["moving_variance", false, "mean"]])");
}

}  // namespace

std::vector<Family> batch_norm_families() {
  return {{{"w2/batchnorm/*_fit"}, fitted, {{"w2/batchnorm/mirrored3/*", kUnevenBatches, of_three_replicas}}},
          {{"w2/batchnorm/*/variable_aggregation"}, aggregations, {{"*", kNoDivergence, with_means}}},
          {{"w2/batchnorm/*/sync*"},
           normalized,
           {{"*_all_empty", kNoRows, without_update},
            {"*/sync0_empty_replica", kNoRows, without_update},
            {"*/mirrored3/sync0_rows1", kFloat64, without_rounding},
            {"*/mirrored3/*_grad", kFloat64, without_rounding},
            {"*/default/sync0_grad", kFloat64, without_rounding}}}};
}

}  // namespace cohort::conformance
