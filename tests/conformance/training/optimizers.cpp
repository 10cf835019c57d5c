// Recorded lines of optimizers.
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/train/optimizers/adagrad.h>
#include <cohort/train/optimizers/adam_w.h>
#include <cohort/train/optimizers/lamb.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>

#include "../scenarios/checkpoints.h"
#include "families.h"
#include "recorded_optimizers.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kRowsAreMerged = "rows of a sparse gradient are merged";
constexpr std::string_view kLimits = "limits and counts of steps are checked";
constexpr std::string_view kOneCall = "one call is no accumulation";
constexpr std::string_view kDtypes = "a gradient has the dtype of its variable";
constexpr std::string_view kAsGiven = "an optimizer takes variables as they come";
constexpr std::string_view kOptions = "options are those of the class";

Tensor numbers(const Json& list) {
  std::vector<double> all;
  for (const Json& number : list)
    all.push_back(number == "inf"   ? std::numeric_limits<double>::infinity()
                  : number == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                    : number.get<double>());
  return Tensor::from(all).cast(DType::kFloat32);
}

void multiply(const Tensor& tensor, double factor) {
  for (float& element : tensor.span<float>()) element *= static_cast<float>(factor);
}

Json steps(const Record& record) {
  const Json& input = record.arguments;
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const Variable variable({.name = "w", .initial_value = numbers(input.at("w0"))});
  const auto optimizer = optimizer_of(input);
  Json weights = Json::array();
  for (const Json& step : input.at("gradients")) {
    strategy.run([&](ReplicaContext& replica) {
      const Tensor gradient = numbers(step);
      multiply(gradient, replica.replica_id_in_sync_group() + 1);
      optimizer->apply_gradients({{gradient, variable}});
    });
    weights.push_back(show(variable.components().back()));
  }
  const Json recorded = record.outcome.value("slots", Json::object());
  Json outcome{{"w_after_each_step", weights},
               {"iterations", optimizer->iterations()},
               {"slots", slots_by_recorded_names(*optimizer, variable, recorded)}};
  if (record.outcome.contains("w_after_finalize_variable_values")) {
    optimizer->swap_averages({{variable}});
    outcome["w_after_finalize_variable_values"] = show(variable.components().back());
  }
  return outcome;
}

/// Losses are scaled by what the optimizer says.
Json scaled_steps(const Record& record) {
  const Json& input = record.arguments;
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const Variable variable({.name = "w", .initial_value = numbers(input.at("w0"))});
  Sgd optimizer({.learning_rate = 0.1});
  optimizer.set_update_options({.loss_scale = LossScaleOptions{.first = 16, .steps_to_double = 2}});
  Json list = Json::array();
  for (const Json& step : input.at("unscaled_gradients")) {
    strategy.run([&] {
      const Tensor gradient = numbers(step);
      multiply(gradient, optimizer.loss_scale());
      optimizer.apply_gradients({{gradient, variable}});
    });
    const auto [scale, steady] = optimizer.loss_scale_state();
    list.push_back({{"w", show(variable.components().back())},
                    {"scale", scale},
                    {"step_counter", steady},
                    {"inner_iterations", optimizer.iterations()}});
  }
  return list;
}

Tensor matrix(const Json& rows) {
  Json flat = Json::array();
  for (const Json& row : rows)
    for (const Json& number : row) flat.push_back(number);
  return numbers(flat).reshape({static_cast<std::int64_t>(rows.size()), -1});
}

/// A bias and a kernel; a bias without gradients is left out.
Json two_variables(const Record& record) {
  const Json& input = record.arguments;
  const Variable bias({.name = "bias", .initial_value = numbers(input.at("bias0"))});
  const Variable kernel({.name = "kernel", .initial_value = matrix(input.at("kernel0"))});
  const auto optimizer = optimizer_of(input);
  Json list = Json::array();
  for (std::size_t step = 0; step < input.at("kernel_gradients").size(); ++step) {
    std::vector<GradientAndVariable> gradients{{matrix(input.at("kernel_gradients")[step]), kernel}};
    if (!input.at("bias_gradients").is_null())
      gradients.push_back({numbers(input.at("bias_gradients")[step]), bias});
    optimizer->apply_gradients(gradients);
    list.push_back({show(bias.read()), show(kernel.read())});
  }
  return list;
}

/// Rows of a table of 4 x 2.
Json rows(const Record& record, bool densify_first) {
  const Shape shape{4, 2};
  const Variable table({.name = "w", .initial_value = matrix({{0, 1}, {2, 3}, {4, 5}, {6, 7}})});
  const auto optimizer = optimizer_of(record.arguments);
  Json list = Json::array();
  for (const Json& step : record.arguments.at("sparse_gradients")) {
    const IndexedSlices gradient{matrix(step.at("values")),
                                 Tensor::from(step.at("rows").get<std::vector<std::int64_t>>()), shape};
    if (densify_first)
      optimizer->apply_gradients({{densify(gradient), table}});
    else
      optimizer->apply_sparse_gradients({{gradient, table}});
    list.push_back(show(table.read()));
  }
  return list;
}

Json rows_of_line(const Record& record) { return rows(record, record.arguments.at("densified")); }
Json merged_rows(const Record& record) { return rows(record, true); }

Json first_steps(const Record& record) {
  const Variable variable({.name = "w", .initial_value = numbers(record.arguments.at("w0"))});
  const auto optimizer = first_optimizer_of(record.arguments.at("optimizer"));
  Json list = Json::array();
  for (const Json& step : record.arguments.at("gradients")) {
    optimizer->apply_gradients({{numbers(step), variable}});
    list.push_back(show(variable.read()));
  }
  return list;
}

Json with_options(const UpdateOptions& options) {
  Sgd optimizer;
  optimizer.set_update_options(options);
  return "made";
}

/// A step of an optimizer that has seen another variable before.
Json step_of_another() {
  const Variable first({.name = "first", .initial_value = numbers({1, 2})});
  const Variable other({.name = "other", .initial_value = numbers({1, 2})});
  Sgd optimizer({.learning_rate = 0.1});
  optimizer.make_slots({{first}});
  optimizer.apply_gradients({{numbers({1, 1}), other}});
  return show(other.read());
}

Json miscellaneous(const Record& record) {
  const std::string what = record.arguments.at("op");
  if (what == "clip_neg") return with_options({.clip = {.norm = -1}});
  if (what == "accum_0") return with_options({.accumulation_steps = 0});
  if (what == "accum_1") return with_options({.accumulation_steps = 1});
  if (what == "momentum_range") return Momentum({.momentum = 2}).options().momentum;
  if (what == "wrong_var") return step_of_another();
  Sgd sgd({.learning_rate = 0.1});
  if (what == "loss_scale") {
    sgd.set_update_options({.loss_scale = LossScaleOptions{.first = 8}});
    return 2 * sgd.loss_scale();
  }
  if (what == "all_none") {
    sgd.apply_gradients({});
    return sgd.iterations();
  }
  const Variable variable({.name = "w", .initial_value = numbers({1, 2})});
  sgd.apply_gradients({{Tensor::from({1.0, 1.0}), variable}});  // grad_dtype
  return show(variable.read());
}

/// Defaults of the classes.
Json defaults(const Record& record) {
  const std::string what = record.arguments.at("op");
  if (what == "get_config_sgd") return {{"learning_rate", SgdOptions{}.learning_rate}};
  if (what == "get_config_adamw") {
    const AdamWOptions options;
    return {{"learning_rate", options.learning_rate},
            {"weight_decay", options.weight_decay},
            {"beta_1", options.beta_1},
            {"beta_2", options.beta_2},
            {"epsilon", options.epsilon}};
  }
  if (what == "get_config_lamb") {
    const LambOptions options;
    return {{"learning_rate", options.learning_rate},
            {"beta_1", options.beta_1},
            {"beta_2", options.beta_2},
            {"epsilon", options.epsilon}};
  }
  const AdagradOptions options;
  return {{"learning_rate", options.learning_rate},
          {"initial_accumulator_value", options.initial_accumulator},
          {"epsilon", options.epsilon}};
}

/// Of what the original lists, the arguments that the class has for itself; but the rate of SGD and a weight
/// decay of AdamW have no other default.
Json own_defaults(const Record& record) {
  Json outcome = record.outcome;
  for (const char* const other : {"name", "clipnorm", "global_clipnorm", "clipvalue", "use_ema",
                                  "ema_momentum", "ema_overwrite_frequency", "loss_scale_factor",
                                  "gradient_accumulation_steps", "momentum", "nesterov", "amsgrad"})
    outcome.erase(other);
  if (outcome.at("weight_decay").is_null()) outcome.erase("weight_decay");
  return outcome;
}

std::vector<FamilyDifference> of_steps() {
  std::vector<FamilyDifference> differences;
  for (const char* const pattern : {"w2/optimizer/mirrored*_gradient_accumulation_steps=*",
                                    "w2/optimizer/mirrored*_ema_overwrite_frequency=*"})
    differences.push_back({pattern, kInReplicas, by_hand});
  for (const char* const pattern : {"*/Adam_learning_rate=0.1", "*/Adam_*amsgrad=*", "*/Adam_*clip*",
                                    "*/Adam_*use_ema=*", "*/Adam_*weight_decay=*", "*/AdamW_*"})
    differences.push_back({pattern, kAdamInDoubles, by_hand});
  return differences;
}

std::vector<FamilyDifference> of_rows() {
  std::vector<FamilyDifference> differences;
  for (const char* const pattern :
       {"*/sparse_Adam_*", "*/sparse_AdamW_*", "*/sparse_RMSprop_*", "*/sparse_Ftrl_*", "*/sparse_Adadelta_*",
        "*/sparse_Nadam_*", "*/sparse_SGD_*clip*"})
    differences.push_back({pattern, kRowsAreMerged, merged_rows});
  return differences;
}

FamilyDifference refused(std::string_view pattern, std::string_view why) {
  return {pattern, why, [](const Record&) { return an_error(); }};
}

FamilyDifference comes_out(std::string_view pattern, std::string_view why, const Json& outcome) {
  return {pattern, why, [outcome](const Record&) { return outcome; }};
}

}  // namespace

std::vector<Family> optimizer_families() {
  return {{{"w2/optimizer/*/lossscale_*"}, scaled_steps},
          {{"w2/optimizer/default/two_*"}, two_variables},
          {{"w2/optimizer/default/sparse_*", "w2/optimizer/default/dense_*"}, rows_of_line, of_rows()},
          {{"w2/optimizer/default/misc_get_config_*"}, defaults, {{"*", kOptions, own_defaults}}},
          {{"w2/optimizer/default/misc_*"},
           miscellaneous,
           {refused("*/misc_clip_neg", kLimits), refused("*/misc_accum_0", kLimits),
            refused("*/misc_grad_dtype", kDtypes), comes_out("*/misc_accum_1", kOneCall, "made"),
            comes_out("*/misc_wrong_var", kAsGiven, {0.9, 1.9}), comes_out("*/misc_all_none", kAsGiven, 1)}},
          {{"w2/optimizer/*"}, steps, of_steps()},
          {{"w2/optimizer_v1/*"}, first_steps}};
}

}  // namespace cohort::conformance
