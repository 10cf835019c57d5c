#include "training_tasks.h"

#include <functional>
#include <map>
#include <memory>

#include <cohort/input/distribute.h>
#include <cohort/remote/local_cluster.h>
#include <cohort/resolvers/task_cluster_resolver.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>

#include "../scenarios/common.h"
#include "server/client/server_variables.h"

namespace cohort::conformance {

TrainingTasks::TrainingTasks(int workers, int servers) : servers_(servers), processes_(0, servers) {
  workers_.emplace_back(processes_.chief());
  for (int worker = 1; worker < workers; ++worker)
    workers_.emplace_back(processes_.place({"worker", worker - 1}));
}

std::vector<Variable> TrainingTasks::make(const VariableOptions& options) const {
  std::vector<Variable> variables;
  for (const ParameterServerStrategy& worker : workers_) {
    const auto scope = worker.scope();
    variables.emplace_back(options);
  }
  return variables;
}

namespace {

// What strategies of single workers are, and what they cannot be made of.

constexpr std::string_view kNoGraph = "there is no graph to build or to initialise";
constexpr std::string_view kWorksAtOnce = "a strategy works at once";
constexpr std::string_view kCluster = "parameter servers need a cluster";
constexpr std::string_view kEvaluator = "an evaluator has a cluster of its own";
constexpr std::string_view kResults = "functions return their results";
constexpr std::string_view kOwnShard = "each task shards its own dataset";

using Jobs = std::vector<std::pair<std::string, int>>;

Json no_outcome(const Record& /*record*/) { return an_error(); }

/// A strategy of one task of a cluster whose other tasks are not there.
Json made(const Jobs& jobs, const ClusterTask& task) {
  const remote::LocalCluster cluster(jobs);
  const ParameterServerStrategy strategy(cluster.place(task));
  return strategy.num_replicas_in_sync();
}

Family construction(std::string_view pattern, const Jobs& jobs, const ClusterTask& task,
                    std::vector<FamilyDifference> differences = {}) {
  return {{pattern}, [=](const Record& /*record*/) { return made(jobs, task); }, std::move(differences)};
}

Json without_card() {
  const TaskClusterResolver cluster;
  const ParameterServerStrategy strategy(cluster.place());
  return strategy.num_replicas_in_sync();
}

/// What a new strategy does.
Family at_once(std::string_view pattern, const std::function<Json(const ParameterServerStrategy&)>& use,
               const Json& outcome) {
  return {{pattern},
          [use](const Record& /*record*/) {
            const TrainingTasks tasks(1, 1);
            return use(tasks.workers().front());
          },
          {{pattern, kWorksAtOnce, [outcome](const Record& /*record*/) { return outcome; }}}};
}

template <class Distributed>
Json steps_of(const Distributed& dataset) {
  Json steps = Json::array();
  for (const PerReplica<Tensor>& step : dataset) steps.push_back(show(step.components().front()));
  return steps;
}

Json worker_devices(const ParameterServerStrategy& strategy, std::string_view job, int index) {
  Json names = Json::array();
  for (const Device device : strategy.extended().worker_devices())
    names.push_back(fmt::format("/job:{}/replica:0/task:{}/device:CPU:{}", job, index, device.index()));
  return names;
}

Json properties(const ParameterServerStrategy& strategy, std::string_view job, int index) {
  return {{"num_replicas_in_sync", strategy.num_replicas_in_sync()},
          {"worker_devices", worker_devices(strategy, job, index)},
          {"should_checkpoint", strategy.extended().should_checkpoint()},
          {"should_save_summary", strategy.extended().should_save_summary()}};
}

Json properties_without_graph(const Record& record) {
  Json outcome = record.outcome;
  for (const char* key :
       {"parameter_devices", "experimental_should_init", "between_graph", "require_static_shapes"})
    outcome.erase(key);
  outcome["num_replicas_in_sync"] = 1;
  return outcome;
}

/// The servers that variables lie on, counted from the first one's.
Json placed(const TrainingTasks& tasks, const Json& shapes) {
  Json devices = Json::array();
  std::optional<int> first;
  for (const Json& extents : shapes) {
    const auto variables = tasks.make({.shape = Shape(extents.get<std::vector<std::int64_t>>()),
                                       .name = fmt::format("placed_{}", devices.size())});
    const int server = dynamic_cast<const server::ServerVariable&>(*variables.front().state()).place().server;
    if (!first) first = server;
    devices.push_back(fmt::format("/job:ps/task:{}", (server - *first + tasks.servers()) % tasks.servers()));
  }
  return devices;
}

Json device_inside_run(const ParameterServerStrategy& strategy, int worker) {
  const auto devices = strategy.run([](ReplicaContext& replica) { return replica.device().index(); });
  return fmt::format("/job:worker/replica:0/task:{}/device:CPU:{}", worker, devices.components().front());
}

// ---- input of the last worker

Dataset<Tensor> ten() { return Dataset<Tensor>::range(10).batch(2); }

Json with_end(Json batches) {
  batches.push_back("END");
  return batches;
}

Json input_by_function(const ParameterServerStrategy& strategy) {
  Json contexts = Json::array();
  const auto dataset = strategy.distribute_datasets_from_function([&](const InputContext& context) {
    contexts.push_back(
        {context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync});
    return ten();
  });
  const Json batches = steps_of(dataset);
  return {{"input_contexts", contexts}, {"batches", with_end(batches)}};
}

Json input_by_dataset(const ParameterServerStrategy& strategy) {
  return {{"input_contexts", Json::array()},
          {"batches", with_end(steps_of(strategy.distribute_dataset(ten())))}};
}

Json ten_batches(const Json& contexts) {
  return {{"input_contexts", contexts}, {"batches", {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, "END"}}};
}

/// Whether each of run, call_for_each_replica, and the two ways to distribute gives nothing.
Json what_gives_nothing(const ParameterServerStrategy& strategy) {
  return {
      strategy.run([] { return 1; }).components().empty(), false,
      steps_of(strategy.distribute_datasets_from_function([](const InputContext&) { return ten(); })).empty(),
      steps_of(strategy.distribute_dataset(ten())).empty()};
}

}  // namespace

std::vector<Family> training_constructor_families() {
  return {
      construction("*/ctor_no_ps", {{"worker", 1}}, {"worker", 0}),
      construction("*/ctor_evaluator", {{"worker", 1}, {"ps", 1}, {"evaluator", 1}}, {"evaluator", 0},
                   {{"*/ctor_evaluator", kEvaluator, no_outcome}}),
      construction("*/ctor_bad_task_id", {{"worker", 1}, {"ps", 1}}, {"worker", 7}),
      construction("*/ctor_empty", {}, {"worker", 0}, {{"*/ctor_empty", kCluster, no_outcome}}),
      construction("*/ctor_two_chiefs", {{"chief", 2}, {"worker", 1}, {"ps", 1}}, {"chief", 0}),
      {{"*/ctor_resolver_none_no_tfconfig"},
       [](const Record& /*record*/) { return without_card(); },
       {{"*/ctor_resolver_none_no_tfconfig", kCluster, no_outcome}}},
      at_once(
          "*/ctor_eager_scope",
          [](const ParameterServerStrategy& strategy) {
            const auto scope = strategy.scope();
            return Json(get_strategy() == strategy);
          },
          true),
      at_once(
          "*/ctor_eager_run",
          [](const ParameterServerStrategy& strategy) { return show(strategy.run([] { return 1; })); }, 1),
      at_once("*/ctor_eager_dataset",
              [](const ParameterServerStrategy& strategy) {
                return steps_of(strategy.distribute_dataset(Dataset<Tensor>::range(4).batch(2)));
              },
              {{0, 1}, {2, 3}}),
      at_once("*/ctor_eager_dataset_fn",
              [](const ParameterServerStrategy& strategy) {
                return steps_of(strategy.distribute_datasets_from_function(
                    [](const InputContext&) { return Dataset<Tensor>::range(4); }));
              },
              {0, 1, 2, 3}),
  };
}

std::vector<Family> training_property_families(const TrainingTasks& tasks) {
  const auto& workers = tasks.workers();
  const auto plays = [](std::string_view pattern, const std::function<Json()>& play,
                        std::vector<FamilyDifference> differences = {}) {
    return Family{{pattern}, [play](const Record& /*record*/) { return play(); }, std::move(differences)};
  };
  const auto describe = [&](std::string_view pattern, std::size_t worker, const char* job, int index) {
    return plays(pattern,
                 [&workers, worker, job, index] { return properties(workers.at(worker), job, index); },
                 {{pattern, kNoGraph, properties_without_graph}});
  };
  const auto& last = workers.back();
  const int count = static_cast<int>(workers.size());
  const Json own_context = Json::array({{1, 0, 1}});
  std::vector<FamilyDifference> other_context;
  if (count > 1) {
    other_context = {
        {"*/input_fn", kOwnShard, [=](const Record& /*record*/) { return ten_batches(own_context); }}};
  }
  return {
      describe("*/properties_chief", 0, "chief", 0),
      describe("*/properties_worker", 1, "worker", 0),
      describe("*/properties_worker0", 0, "worker", 0),
      describe("*/properties_worker1", 1, "worker", 1),
      {{"*/placement_scalars", "*/placement_mixed"},
       [&tasks](const Record& record) { return placed(tasks, record.arguments.at("shapes")); }},
      plays("*/op_device_worker0", [&workers] { return device_inside_run(workers.front(), 0); }),
      plays("*/op_device_worker1", [&workers] { return device_inside_run(workers.at(1), 1); }),
      plays(
          "*/input_fn", [&last] { return input_by_function(last); }, other_context),
      plays("*/input_ds", [&last] { return input_by_dataset(last); }),
      plays("*/input_distribute_dataset", [&last] { return input_by_dataset(last); },
            {{"*/input_distribute_dataset", kResults,
              [](const Record& /*record*/) { return ten_batches(Json::array()); }}}),
      plays("*/input_from_function", [&last] { return input_by_function(last); },
            {{"*/input_from_function", kResults,
              [=](const Record& /*record*/) { return ten_batches(own_context); }}}),
      plays("*/run_returns_none", [&workers] { return what_gives_nothing(workers.front()); },
            {{"*/run_returns_none", kResults,
              [](const Record& /*record*/) {
                return Json{false, false, false, false};
              }}}),
  };
}

namespace {

// What single workers write to variables on servers, and what they reduce.

constexpr std::string_view kStateOfItsOwn = "an optimizer's state is no variable of the program";

int server_of(const Variable& variable) {
  return dynamic_cast<const server::ServerVariable&>(*variable.state()).place().server;
}

/// One step of a worker, which minimises the sum of (w - [3, 1 + worker])^2: [worker, loss, w, step].
Json step_of(const ParameterServerStrategy& strategy, int worker, const Variable& weights,
             const Variable& step, Optimizer& optimizer) {
  const Tensor value = weights.read();
  const auto w = value.span<float>();
  const float first = w[0] - 3;
  const float second = w[1] - 1 - static_cast<float>(worker);
  strategy.run([&] {
    optimizer.apply_gradients({{vector({2 * first, 2 * second}), weights}});
    step.assign_add(std::int64_t{1});
  });
  return {worker, first * first + second * second, show(weights.read()), step.read().item<std::int64_t>()};
}

template <class OptimizerType, class Options>
Json trained(const TrainingTasks& tasks, const Options& options) {
  const auto weights = tasks.make({.name = "w", .initial_value = vector({1, -2})});
  const auto steps = tasks.make(
      {.dtype = DType::kInt64, .name = "step", .aggregation = VariableAggregation::kOnlyFirstReplica});
  const auto count = static_cast<int>(tasks.workers().size());
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  optimizers.reserve(static_cast<std::size_t>(count));
  for (int worker = 0; worker < count; ++worker)
    optimizers.push_back(std::make_unique<OptimizerType>(options));
  Json log = Json::array();
  for (int round = 0; round < 3; ++round) {
    for (int worker = 0; worker < count; ++worker) {
      const auto place = static_cast<std::size_t>(worker);
      log.push_back(
          step_of(tasks.workers()[place], worker, weights[place], steps[place], *optimizers[place]));
    }
  }
  // Counted from the server of the first one.
  const int distance = server_of(steps.front()) - server_of(weights.front()) + tasks.servers();
  return {
      {"[worker, loss, w, global_step]", log},
      {"variable_devices", {"/job:ps/task:0", fmt::format("/job:ps/task:{}", distance % tasks.servers())}}};
}

template <class OptimizerType, class Options>
Family training(const TrainingTasks& tasks, std::string_view pattern, const Options& options,
                std::vector<FamilyDifference> differences = {}) {
  return {{pattern},
          [&tasks, options](const Record& /*record*/) { return trained<OptimizerType>(tasks, options); },
          std::move(differences)};
}

/// Those of the program: weights and number of steps.
Json without_slots(const Record& record) {
  Json outcome = record.outcome;
  Json& devices = outcome.at("variable_devices");
  devices = {devices[0], devices[1]};
  return outcome;
}

VariableAggregation aggregation_of(const std::string& name) {
  static const std::map<std::string, VariableAggregation> kAll{
      {"NONE", VariableAggregation::kNone},
      {"SUM", VariableAggregation::kSum},
      {"MEAN", VariableAggregation::kMean},
      {"ONLY_FIRST_REPLICA", VariableAggregation::kOnlyFirstReplica}};
  return kAll.at(name);
}

/// What worker 0 does to a variable that is 1, in a replica.
Json updated(const TrainingTasks& tasks, const Record& record) {
  const Variable variable =
      tasks
          .make({.name = "v",
                 .initial_value = number(1),
                 .aggregation = aggregation_of(record.arguments.at("aggregation").get<std::string>())})
          .front();
  tasks.workers().front().run([&](ReplicaContext& replica) {
    if (record.id.ends_with("_assign_add")) {
      variable.assign_add(2.0F);
    } else if (record.id.ends_with("_assign")) {
      variable.assign(5.0F);
    } else {
      replica.merge_call(
          [&](const Strategy& strategy, const PerReplica<Tensor>& value) {
            strategy.extended().update(
                variable, [](const Variable& v, const Tensor& t) { v.assign_add(t); }, value);
          },
          number(4));
    }
  });
  // The name of a class has no counterpart.
  return {record.outcome.at(0), show(variable.read())};
}

Json reduced(const TrainingTasks& tasks, ReduceOp op) {
  return show(tasks.workers().front().reduce(op, PerReplica(std::vector{vector({1, 2})})));
}

}  // namespace

std::vector<Family> training_step_families(const TrainingTasks& tasks) {
  return {
      training<Sgd>(tasks, "*/train_sgd", SgdOptions{.learning_rate = 0.1}),
      training<Momentum>(tasks, "*/train_momentum", MomentumOptions{.learning_rate = 0.1, .momentum = 0.9},
                         {{"*/train_momentum", kStateOfItsOwn, without_slots}}),
      training<Adam>(tasks, "*/train_adam", AdamOptions{.learning_rate = 0.1, .epsilon = 1e-8},
                     {{"*/train_adam", kStateOfItsOwn, without_slots}}),
      {{"*/update_*_assign_add", "*/update_*_assign", "*/update_*_merge_update"},
       [&tasks](const Record& record) { return updated(tasks, record); }},
      {{"*/reduce_sum"}, [&tasks](const Record& /*record*/) { return reduced(tasks, ReduceOp::kSum); }},
      {{"*/reduce_mean"}, [&tasks](const Record& /*record*/) { return reduced(tasks, ReduceOp::kMean); }},
  };
}

}  // namespace cohort::conformance
