// Recorded lines of losses and their reductions.
#include <map>
#include <string>

#include <cohort/train/losses/average_loss.h>
#include <cohort/train/losses/classification_losses.h>
#include <cohort/train/losses/loss_reduction.h>
#include <cohort/train/losses/regression_losses.h>

#include "../scenarios/checkpoints.h"
#include "families.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kAnyShape = "losses have any shape";
constexpr std::string_view kSameShape = "labels have the shape of the predictions";

Loss recorded_loss(const Json& input) {
  const Json& args = input.at("args");
  const bool logits = args.value("from_logits", false);
  const double smoothing = args.value("label_smoothing", 0.0);
  const std::map<std::string, Loss> by_name{
      {"MeanSquaredError", losses::mean_squared_error()},
      {"MeanAbsoluteError", losses::mean_absolute_error()},
      {"MeanAbsolutePercentageError", losses::mean_absolute_percentage_error()},
      {"MeanSquaredLogarithmicError", losses::mean_squared_logarithmic_error()},
      {"Huber", losses::huber(args.value("delta", 1.0))},
      {"LogCosh", losses::log_cosh()},
      {"BinaryCrossentropy",
       losses::binary_crossentropy({.from_logits = logits, .label_smoothing = smoothing})},
      {"BinaryFocalCrossentropy", losses::binary_focal_crossentropy({.from_logits = logits})},
      {"CategoricalCrossentropy",
       losses::categorical_crossentropy({.from_logits = logits, .label_smoothing = smoothing})},
      {"KLDivergence", losses::kl_divergence()},
      {"Poisson", losses::poisson()},
      {"Hinge", losses::hinge()},
      {"SquaredHinge", losses::squared_hinge()},
      {"CategoricalHinge", losses::categorical_hinge()},
      {"CosineSimilarity", losses::cosine_similarity()}};
  const std::string name = input.at("loss");
  if (name != "SparseCategoricalCrossentropy") return by_name.at(name);
  losses::SparseCrossentropyOptions options{.from_logits = logits};
  if (args.contains("ignore_class")) options.ignore_class = args.at("ignore_class").get<std::int64_t>();
  return losses::sparse_categorical_crossentropy(options);
}

LossReduction reduction_named(const std::string& name) {
  static const std::map<std::string, LossReduction> kReductions{
      {"sum_over_batch_size", LossReduction::kSumOverBatchSize},
      {"mean_with_sample_weight", LossReduction::kMeanWithSampleWeight},
      {"sum", LossReduction::kSum},
      {"none", LossReduction::kNone}};
  return kReductions.at(name);
}

/// 1 where the label is not ignored.
std::optional<Tensor> mask_of(const Json& input) {
  if (!input.at("args").contains("ignore_class")) return std::nullopt;
  Json mask = Json::array();
  for (const Json& label : input.at("y_true"))
    mask.push_back(label == input.at("args").at("ignore_class") ? 0 : 1);
  return tensor_of(mask);
}

/// `make()` in each replica, as a list.
template <class Make>
Json in_replicas(const Record& record, Make make) {
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  Json list = Json::array();
  for (const Tensor& each : strategy.local_results(strategy.run([&] { return make(); })))
    list.push_back(show(each));
  return list;
}

Json reduced(const Record& record) {
  const Json& input = record.arguments;
  const Loss loss = recorded_loss(input);
  const ReduceLossesOptions options{.reduction = reduction_named(input.at("reduction")),
                                    .sample_weight = optional_tensor_of(input.at("sample_weight")),
                                    .mask = mask_of(input)};
  return in_replicas(record, [&] {
    return reduce_losses(loss(tensor_of(input.at("y_true")), tensor_of(input.at("y_pred"))), options);
  });
}

Json averaged(const Record& record) {
  const Json& input = record.arguments;
  const Tensor losses = input.contains("per_example") ? tensor_of(input.at("per_example")) : vector({1});
  AverageLossOptions options;
  if (input.contains("sample_weight")) options.sample_weight = tensor_of(input.at("sample_weight"));
  const Json size = input.value("global_batch_size", Json());
  if (!size.is_null()) options.global_batch_size = size.get<std::int64_t>();
  const auto average = [&] { return compute_average_loss(losses, options); };
  if (record.id.find("/nn_cross_") == std::string::npos) return in_replicas(record, average);
  const Strategy strategy = strategy_named(strategy_of(record));
  // Outside any scope the default strategy is inside its replica, as in the original's.
  const auto scope = strategy.scope();
  return show(average());
}

Json regularization(const Record& record) {
  const auto scaled = [&] { return scale_regularization_loss(tensor_of(record.arguments.at("loss"))); };
  if (record.id.find("/nn_cross_") == std::string::npos) return in_replicas(record, scaled);
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  return show(scaled());
}

Json loss_edge(const Record& record) {
  const Loss squared = losses::mean_squared_error();
  const std::string name = case_of(record);
  const Tensor labels = tensor({1, 2}, {2, 1});
  const Tensor zeros = tensor({0, 0}, {2, 1});
  if (name == "edge_shape_mismatch") return show(squared(labels, tensor({1, 2, 3}, {3, 1})));
  if (name == "edge_broadcast") return show(squared(labels, tensor({1, 2, 3, 1, 2, 3}, {2, 3})));
  if (name == "edge_empty") return show(squared(tensor({}, {0, 2}), tensor({}, {0, 2})));
  if (name == "edge_squeeze") return show(squared(vector({1, 2}), tensor({1, 4}, {2, 1})));
  const Tensor losses = squared(labels, zeros);
  if (name == "edge_weights_zero") return show(reduce_losses(losses, {.sample_weight = vector({0, 0})}));
  if (name == "edge_weights_scalar") return show(reduce_losses(losses, {.sample_weight = number(3)}));
  return show(reduce_losses(
      losses, {.reduction = LossReduction::kMeanWithSampleWeight, .sample_weight = vector({0, 0})}));
}

Json average_of_six(const Record& record) {
  if (record.id.find("/nn_cross_") != std::string::npos) return 1.5;
  return record.id.starts_with("w2/loss/mirrored2/") ? Json{1.5, 1.5} : Json{1.5};
}

}  // namespace

std::vector<Family> loss_families() {
  return {
      {.patterns = {"w2/loss/*/nn_*compute_average_loss*"},
       .run = averaged,
       .differences = {{"w2/loss/*/nn_*compute_average_loss_scalar", kAnyShape, average_of_six}}},
      {.patterns = {"w2/loss/*/nn_*scale_regularization_loss"}, .run = regularization},
      {.patterns = {"w2/loss/*/edge_*"},
       .run = loss_edge,
       .differences = {{"w2/loss/*/edge_broadcast", kSameShape, [](const Record&) { return an_error(); }}}},
      {.patterns = {"w2/loss/*/*_now", "w2/loss/*/*_w"}, .run = reduced}};
}

}  // namespace cohort::conformance
