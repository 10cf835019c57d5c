// Recorded lines of train_and_evaluate, and of the tasks that take part in it.
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <cohort/cluster/cluster_roles.h>
#include <cohort/cluster/cluster_spec_json.h>
#include <cohort/input/dataset.h>
#include <cohort/resolvers/tf_config_cluster_resolver.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/callbacks/function_callback.h>
#include <cohort/trainer/train_and_evaluate.h>

#include "../scenarios/checkpoints.h"
#include "families.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kNoHooks = "train_and_evaluate has callbacks";
constexpr std::string_view kMultiples = "checkpoints are of multiples of steps";
constexpr std::string_view kRoles = "tasks are chief, worker, evaluator and ps";
constexpr std::string_view kAddress = "an address is asked of the resolver";
constexpr std::string_view kEvaluator = "an evaluator is a chief of its own";
constexpr std::string_view kKnown = "a resolver says what it knows";

/// One number w; the loss of each example is (w - 3)^2.
class OneNumber {
 public:
  using Batch = Tensor;

  [[nodiscard]] std::vector<Variable> parameters() const { return {w_}; }
  [[nodiscard]] Tensor forward(const Batch& batch) const {
    return Tensor::full({batch.shape()[0]}, DType::kFloat32, w_.read().item<float>());
  }
  [[nodiscard]] Tensor loss(const Batch& batch, const Tensor& /*predictions*/) const {
    const float error = w_.read().item<float>() - 3;
    return Tensor::full({batch.shape()[0]}, DType::kFloat32, error * error);
  }
  [[nodiscard]] std::vector<GradientAndVariable> gradients(const Batch& batch,
                                                           const Tensor& /*predictions*/) const {
    const auto rows = static_cast<float>(batch.shape()[0]);
    return {{Tensor::scalar(rows * 2 * (w_.read().item<float>() - 3)), w_}};
  }

 private:
  Variable w_{{.name = "w", .initial_value = Tensor::scalar(1.0F)}};
};

Dataset<Tensor> batches(std::optional<int> count) {
  const auto rows =
      Dataset<Tensor>::from_tensor_slices(Tensor::zeros({2 * count.value_or(1)}, DType::kFloat32));
  return count ? rows.batch(2) : rows.batch(2).repeat();
}

/// What a line says, as a program has it.
class EstimatedProgram {
 public:
  EstimatedProgram(const Json& arguments, std::string folder)
      : arguments_(arguments), folder_(std::move(folder)) {}

  /// As a program does that is started anew.
  [[nodiscard]] Json run(std::int64_t max_steps, const std::vector<Exporter>& exporters) const {
    const OneNumber model;
    Sgd optimizer({.learning_rate = 0.1});
    Trainer trainer(get_strategy(), model, optimizer);
    FunctionCallback stop(
        {.on_train_batch_end = [&](std::int64_t, const Logs&) { trainer.training().stop(); }});
    EvalSpec<Tensor> eval{.data = batches(number_of_batches("eval_n")),
                          .exporters = exporters,
                          .start_delay_seconds = arguments_.value("start_delay", 0.0),
                          .throttle_seconds = arguments_.value("throttle", 0.0)};
    if (arguments_.contains("eval_steps")) eval.steps = steps_of(arguments_.at("eval_steps"));
    TrainSpec<Tensor> train{.data = batches(number_of_batches("train_n")), .max_steps = max_steps};
    if (arguments_.contains("train_n")) train.epochs = 1;  // the original makes one pass
    if (arguments_.contains("early")) train.callbacks = {stop};
    return show_evaluations(train_and_evaluate<Tensor>(trainer, train, eval,
                                                       {.folder = folder_,
                                                        .save_every_steps = arguments_.value("every", 4),
                                                        .max_to_keep = arguments_.value("keep", 5)}),
                            trainer, model);
  }

 private:
  /// Of two examples; none: there is no end.
  [[nodiscard]] std::optional<int> number_of_batches(const char* examples) const {
    return arguments_.contains(examples) ? std::optional(arguments_.at(examples).get<int>() / 2)
                                         : std::nullopt;
  }
  [[nodiscard]] static std::optional<std::int64_t> steps_of(const Json& steps) {
    return steps.is_null() ? std::nullopt : std::optional(steps.get<std::int64_t>());
  }

  [[nodiscard]] static Json show_evaluations(const std::vector<Evaluation>& evaluations,
                                             Trainer<Tensor>& trainer, const OneNumber& model) {
    Json returned = nullptr;
    Json steps = Json::array();
    for (const Evaluation& evaluation : evaluations) {
      steps.push_back(evaluation.step);
      returned = {{"loss", show(*evaluation.logs.find("loss"))}, {"global_step", evaluation.step}};
    }
    return {{"returned_metrics", returned},
            {"evaluations_at_global_step", steps},
            {"final_w", show(model.parameters()[0].read())},
            {"final_global_step", trainer.training().step()}};
  }

  const Json& arguments_;
  std::string folder_;
};

Json files_in(const std::string& folder) {
  Json files = Json::array();
  for (const FoundCheckpoint& found : list_checkpoints(folder))
    files.push_back(fmt::format("model.ckpt-{}.index", found.step));
  std::sort(files.begin(), files.end());
  return files;
}

Json estimated(const Record& record) {
  const CheckpointFolder folder;
  const Json arguments = record.arguments.value("args", Json::object());
  const EstimatedProgram program(arguments, folder.path());
  Json runs = Json::array();
  runs.push_back(program.run(arguments.value("max_steps", 10), {}));
  if (arguments.contains("twice")) runs.push_back(program.run(arguments.value("max2", 10), {}));
  return {{"runs", runs}, {"checkpoint_files", files_in(folder.path())}};
}

/// `[E.BestExporter("best", srv, exports_to_keep=2)]`; the final one exports once.
Exporter exporter_in_words(const std::string& text) {
  const std::regex form(R"re((Final|Latest|Best)Exporter\("([^"]*)"(?:.*exports_to_keep=(\d+))?)re");
  std::smatch found;
  if (!std::regex_search(text, found, form)) throw std::runtime_error("no exporter here is " + text);
  Exporter exporter{.name = found[2]};
  exporter.when = found[1] == "Best"     ? ExportWhen::kBest
                  : found[1] == "Latest" ? ExportWhen::kLatest
                                         : ExportWhen::kFinal;
  if (found[3].matched) exporter.exports_to_keep = std::stoi(found[3]);
  return exporter;
}

Json exported(const Record& record) {
  const Exporter exporter = exporter_in_words(record.arguments.at("python"));
  const CheckpointFolder folder;
  const Json arguments = Json::object();
  const Json run = EstimatedProgram(arguments, folder.path()).run(12, {exporter});
  return {{"runs", {run}},
          {"checkpoint_files", files_in(folder.path())},
          {"exported_dirs",
           {{exporter.name, list_checkpoints(folder.path() + "/export/" + exporter.name).size()}}}};
}

/// The line without what the original's hooks and files tell, and its metric of w, which its last value
/// gives.
Json without_hooks(const Record& record) {
  Json outcome = record.outcome;
  outcome.erase("hook_log");
  outcome.erase("other");
  for (Json& run : outcome.at("runs")) {
    run.erase("export_results");
    if (run.at("returned_metrics").is_object()) run.at("returned_metrics").erase("mw");
  }
  return outcome;
}

/// After 10 steps, the next checkpoint of every fourth step is that of step 12.
Json at_multiples(const Record& record) {
  Json outcome = without_hooks(record);
  outcome.at("runs").at(1).at("evaluations_at_global_step") = {12, 16, 18};
  outcome.at("checkpoint_files") = {"model.ckpt-10.index", "model.ckpt-12.index", "model.ckpt-16.index",
                                    "model.ckpt-18.index", "model.ckpt-8.index"};
  return outcome;
}

Json specified(const Record& record) {
  const EvalSpec<Tensor> defaults{.data = batches(1)};
  const std::string op = record.arguments.at("op");
  if (op == "eval_spec_defaults")
    return {*defaults.steps,
            nullptr,
            defaults.start_delay_seconds,
            defaults.throttle_seconds,
            defaults.callbacks.size(),
            defaults.exporters.size()};
  Json arguments = Json::object();
  if (op == "eval_spec_steps0") arguments["eval_steps"] = 0;
  if (op == "eval_spec_steps_neg") arguments["eval_steps"] = -3;
  if (op == "eval_spec_throttle") arguments["throttle"] = -1.0;
  if (op == "eval_spec_delay") arguments["start_delay"] = -1.0;
  const CheckpointFolder folder;
  return EstimatedProgram(arguments, folder.path()).run(1, {});
}

/// Of the chief alone, which the original does not let evaluate.
Json trained_by_chief(const Record& record) {
  const CheckpointFolder folder;
  const Json arguments{{"every", 20}};
  static_cast<void>(
      EstimatedProgram(arguments, folder.path()).run(record.arguments.at("args").at("max"), {}));
  return files_in(folder.path());
}

Json only_files(const Record& record) { return record.outcome.at("checkpoints"); }

/// What a task is told by TF_CONFIG.
Json configured(const Record& record) {
  const TfConfigClusterResolver resolver({}, {{"TF_CONFIG", record.arguments.at("TF_CONFIG").dump()}});
  const ClusterSpec spec = resolver.cluster_spec();
  const ClusterTask task{resolver.task_type().value_or("worker"), resolver.task_id().value_or(0)};
  if (!resolver.task_id()) return {{"task_type", show(resolver.task_type())}, {"task_id", nullptr}};
  return {{"task_type", task.type},
          {"task_id", task.id},
          {"is_chief", is_chief(spec, task)},
          {"num_ps_replicas", spec.has_job("ps") ? spec.num_tasks("ps") : 0},
          {"num_worker_replicas", worker_count(spec, task.type)},
          {"global_id_in_cluster", id_in_cluster(spec, task)}};
}

/// The line without the addresses of TensorFlow's runtime.
Json without_addresses(const Record& record) {
  Json outcome = record.outcome;
  for (const char* address : {"master", "evaluation_master", "cluster"}) outcome.erase(address);
  return outcome;
}

Json without_task(const Record& /*record*/) { return {{"task_type", nullptr}, {"task_id", nullptr}}; }
Json without_number(const Record& /*record*/) { return {{"task_type", "worker"}, {"task_id", nullptr}}; }
Json its_own_chief(const Record& record) {
  Json outcome = without_addresses(record);
  outcome.update(
      {{"is_chief", true}, {"num_ps_replicas", 2}, {"num_worker_replicas", 1}, {"global_id_in_cluster", 0}});
  return outcome;
}
Json refused(const Record& /*record*/) { return an_error(); }

}  // namespace

std::vector<Family> estimator_families() {
  return {
      {{"w2/estimator/*/local_*"},
       estimated,
       {{"*/local_twice_more", kMultiples, at_multiples}, {"*/local_*", kNoHooks, without_hooks}}},
      {{"w2/estimator/*/exporter_*"}, exported, {{"*/exporter_*", kNoHooks, without_hooks}}},
      {{"w2/estimator/*/roles_chief_only"}, trained_by_chief, {{"*/roles_chief_only", kNoHooks, only_files}}},
      {{"w2/estimator/*/spec_*"}, specified},
      {{"w2/estimator/*/runconfig_*"},
       configured,
       {{"*/runconfig_master", kRoles, refused},
        {"*/runconfig_ps1", kRoles, refused},
        {"*/runconfig_empty", kKnown, without_task},
        {"*/runconfig_session_master", kKnown, without_task},
        {"*/runconfig_no_index", kKnown, without_number},
        {"*/runconfig_evaluator_index1", kEvaluator, refused},
        {"*/runconfig_evaluator_in_cluster", kEvaluator, its_own_chief},
        {"*/runconfig_*", kAddress, without_addresses}}}};
}

}  // namespace cohort::conformance
