// What single workers write to variables on servers, and what they reduce.
#include <functional>
#include <map>
#include <memory>

#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>

#include "../scenarios/common.h"
#include "server/server_variable.h"
#include "training_tasks.h"

namespace cohort::conformance {
namespace {

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
