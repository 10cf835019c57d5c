// Tasks that train by themselves, each at its own pace, on variables that servers keep. The test plays chief
// and worker, in two threads.
#include <cohort/server/parameter_server_strategy.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <thread>

#include <cohort/coordinator/serve.h>
#include <cohort/train/optimizers/adagrad.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/lamb.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/rms_prop.h>
#include <cohort/train/optimizers/sgd.h>

#include "task_processes.h"

namespace cohort {
namespace {

using test::TaskProcesses;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;
using testing::ThrowsMessage;

const ClusterTask kChief{"chief", 0};
const ClusterTask kWorker{"worker", 0};

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.span<float>();
  return {values.begin(), values.end()};
}

/// Both tasks run `body`, the worker in a thread of its own.
void run_both(const TaskProcesses& tasks, const ParameterServerOptions& options,
              const std::function<void(const ParameterServerStrategy&, bool is_chief)>& body) {
  const auto run = [&](const ClusterTask& task) {
    const ParameterServerStrategy strategy(tasks.place(task), options);
    auto scope = strategy.scope();
    body(strategy, task == kChief);
  };
  std::thread worker([&] { run(kWorker); });
  run(kChief);
  worker.join();
}

TEST(ParameterServerStrategy, AllTasksGetTheChiefsValueAndSeeEachOthersChanges) {
  for (int servers = 1; servers <= 3; ++servers) {
    const TaskProcesses tasks(0, servers);
    std::atomic<int> ended{0};
    run_both(tasks, {}, [&](const ParameterServerStrategy&, bool is_chief) {
      const Variable a({.name = "a", .initial_value = Tensor::scalar(is_chief ? 3.0F : 5.0F)});
      const Variable b({.shape = {2}, .name = "b"});
      for (int i = 0; i < 10; ++i) a.assign_add(1.0F);
      b.scatter_add({Tensor::from({is_chief ? 1.0F : 2.0F}), Tensor::from({is_chief ? 0 : 1}), {2}});
      ++ended;
      while (ended < 2) std::this_thread::yield();
      EXPECT_EQ(a.read().item<float>(), 23) << servers;
      EXPECT_THAT(floats(b.read()), ElementsAre(1, 2)) << servers;
    });
  }
}

TEST(ParameterServerStrategy, TasksThatMakeOtherVariablesAreTold) {
  const TaskProcesses tasks(0, 1);
  run_both(tasks, {}, [&](const ParameterServerStrategy&, bool is_chief) {
    if (is_chief) {
      const Variable weights({.shape = {2}, .name = "weights"});
    } else {
      EXPECT_THAT([] { const Variable bias({.shape = {2}, .name = "bias"}); },
                  ThrowsMessage<InvalidArgument>(
                      AllOf(HasSubstr("worker 0"), HasSubstr("'bias'"), HasSubstr("'weights'"))));
    }
  });
}

TEST(ParameterServerStrategy, NobodyWaitsForAValueThatTheChiefDoesNotBring) {
  const TaskProcesses tasks(0, 1);
  run_both(tasks, {}, [&](const ParameterServerStrategy&, bool is_chief) {
    if (is_chief) return;
    EXPECT_THAT([] { const Variable weights({.name = "weights"}); },
                ThrowsMessage<Unavailable>(HasSubstr("chief 0")));
  });
}

TEST(ParameterServerStrategy, NobodyWaitsForEverForTheTaskThatGivesTheValues) {
  const remote::LocalCluster cluster({{"worker", 2}, {"ps", 1}});
  std::thread server([&] {
    static_cast<void>(
        serve(ParameterServerStrategy(cluster.place({"ps", 0}), {.initial_values_timeout_seconds = 0.2})));
  });
  {
    const ParameterServerStrategy strategy(cluster.place({"worker", 1}));
    auto scope = strategy.scope();
    EXPECT_THAT([] { const Variable weights({.name = "weights"}); },
                ThrowsMessage<Unavailable>(HasSubstr("worker 0 gives the initial values")));
  }
  { const ParameterServerStrategy giver(cluster.place(kWorker)); }
  server.join();
}

template <class OptimizerType>
void expect_as_local(const UpdateOptions& options = {}, const LearningRateSchedule& rate = 0.1) {
  const std::vector<std::vector<float>> gradients{{1, -2}, {0.5, 3}, {-1, 0}};
  const Variable local({.initial_value = Tensor::from({1.0F, 2.0F})});
  OptimizerType optimizer;
  optimizer.set_learning_rate(rate);
  optimizer.set_update_options(options);
  for (const auto& gradient : gradients) optimizer.apply_gradients({{Tensor::from(gradient), local}});

  const TaskProcesses tasks(0, 2);
  const ParameterServerStrategy strategy(tasks.chief());
  auto scope = strategy.scope();
  const Variable kept({.initial_value = Tensor::from({1.0F, 2.0F})});
  OptimizerType remote;
  remote.set_learning_rate(rate);
  remote.set_update_options(options);
  for (const auto& gradient : gradients) {
    static_cast<void>(kept.read());
    strategy.run([&] { remote.apply_gradients({{Tensor::from(gradient), kept}}); });
  }
  EXPECT_EQ(floats(kept.read()), floats(local.read()));
  EXPECT_EQ(strategy.gradient_staleness().gradients, options.accumulation_steps == 1 ? 3U : 1U);
  EXPECT_EQ(strategy.gradient_staleness().largest, 0U);
}

TEST(ParameterServerStrategy, ServersMakeTheStepsOfOptimizers) {
  expect_as_local<Sgd>();
  expect_as_local<Momentum>();
  expect_as_local<Adam>();
  expect_as_local<Adagrad>();
  expect_as_local<Lamb>();
  expect_as_local<RmsProp>();
}

TEST(ParameterServerStrategy, ServersMakeStepsAtAnyRate) {
  const auto from_nothing = [](std::int64_t step) { return 0.1 * static_cast<double>(step); };
  expect_as_local<Momentum>({}, from_nothing);
}

TEST(ParameterServerStrategy, ServersMakeStepsWithUpdateOptions) {
  expect_as_local<Momentum>({.weight_decay = 0.1});
  expect_as_local<Momentum>({.clip = {.value = 0.5}});
  expect_as_local<Momentum>({.clip = {.norm = 0.5}});
  expect_as_local<Momentum>({.clip = {.global_norm = 0.5, .each_replica = true}});
  expect_as_local<Momentum>({.weight_decay = 0.1, .accumulation_steps = 3});
  expect_as_local<Momentum>({.clip = {.global_norm = 0.5}, .loss_scale = LossScaleOptions{.first = 4}});
}

TEST(ParameterServerStrategy, ServersGetNaNWhereANormIsNotFinite) {
  const TaskProcesses tasks(0, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  auto scope = strategy.scope();
  const Variable weights({.initial_value = Tensor::from({1.0F, 2.0F})});
  Sgd sgd;
  sgd.set_update_options({.clip = {.norm = 1}});
  const float infinity = std::numeric_limits<float>::infinity();
  strategy.run([&] { sgd.apply_gradients({{Tensor::from({100.0F, infinity}), weights}}); });
  EXPECT_THAT(floats(weights.read()), Each(IsNan()));
}

TEST(ParameterServerStrategy, ServersKeepNeitherAveragesNorMasters) {
  const TaskProcesses tasks(0, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  auto scope = strategy.scope();
  const Variable weights({.shape = {2}, .name = "weights"});
  for (const UpdateOptions& options :
       {UpdateOptions{.average = AverageOptions{}}, UpdateOptions{.float32_masters = true}}) {
    Sgd sgd;
    sgd.set_update_options(options);
    EXPECT_THAT(
        [&] { strategy.run([&] {
                sgd.apply_gradients({{Tensor::from({1.0F, 1.0F}), weights}});
              }); },
        ThrowsMessage<Unimplemented>(HasSubstr("'weights' is on a parameter server, which keeps no")));
  }
}

TEST(ParameterServerStrategy, ReplicasOfATaskAggregateFirst) {
  const TaskProcesses tasks(0, 1);
  const ParameterServerStrategy strategy(tasks.chief(), {.devices = cpu_devices(3)});
  auto scope = strategy.scope();
  const Variable sum({.name = "sum", .aggregation = VariableAggregation::kSum});
  const Variable weights({.name = "weights"});
  Sgd optimizer({.learning_rate = 1});
  strategy.run([&](const ReplicaContext& replica) {
    const auto id = static_cast<float>(replica.replica_id_in_sync_group());
    sum.assign_add(id);
    optimizer.apply_gradients({{Tensor::scalar(id), weights}});
  });
  EXPECT_EQ(sum.read().item<float>(), 3);
  EXPECT_EQ(weights.read().item<float>(), -3);
}

TEST(ParameterServerStrategy, StalenessBoundsHowFarATaskRunsAhead) {
  const TaskProcesses tasks(0, 2);
  std::atomic<int> steps_of_chief{0};
  std::atomic<int> steps_of_worker{0};
  run_both(tasks, {.staleness = 2}, [&](const ParameterServerStrategy& strategy, bool is_chief) {
    std::atomic<int>& own = is_chief ? steps_of_chief : steps_of_worker;
    const std::atomic<int>& other = is_chief ? steps_of_worker : steps_of_chief;
    for (int i = 0; i < 200; ++i) {
      // The other one has ended this step on the server, and may be about to count it.
      EXPECT_LE(own.load() - other.load(), 3);
      strategy.end_step();
      ++own;
    }
  });
}

TEST(ParameterServerStrategy, StepsGoOnThoughTheServerThatCountsThemIsKilled) {
  TaskProcesses tasks(0, 2);
  run_both(tasks, {.staleness = 1}, [&](const ParameterServerStrategy& strategy, bool is_chief) {
    for (int i = 0; i < 100; ++i) {
      if (is_chief && i % 25 == 10) {
        tasks.kill({"ps", 0});
        tasks.start({"ps", 0});
      }
      strategy.end_step();
    }
  });
}

TEST(ParameterServerStrategy, AServerThatIsStartedAgainKnowsWhoHasEnded) {
  TaskProcesses tasks(0, 1);
  {
    const ParameterServerStrategy chief(tasks.chief());
    { const ParameterServerStrategy worker(tasks.place(kWorker)); }
    tasks.kill({"ps", 0});
    tasks.start({"ps", 0});
  }
  EXPECT_EQ(tasks.wait({"ps", 0}), 0);
}

TEST(ParameterServerStrategy, OnlyTheRowsThatAreAskedForTravel) {
  const TaskProcesses tasks(0, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  auto scope = strategy.scope();
  const Variable table(
      {.initial_value = Tensor::from({0.0F, 1.0F, 10.0F, 11.0F, 20.0F, 21.0F}).reshape({3, 2})});
  EXPECT_THAT(floats(embedding_lookup(table, Tensor::from({2, 0, 2}))), ElementsAre(20, 21, 0, 1, 20, 21));
  EXPECT_THROW(static_cast<void>(embedding_lookup(table, Tensor::from({3}))), InvalidArgument);
}

TEST(ParameterServerStrategy, OneTaskWritesCheckpoints) {
  const TaskProcesses tasks(0, 1);
  run_both(tasks, {}, [](const ParameterServerStrategy& strategy, bool is_chief) {
    EXPECT_EQ(strategy.extended().should_checkpoint(), is_chief);
    EXPECT_EQ(strategy.extended().should_save_summary(), is_chief);
  });
}

TEST(ParameterServerStrategy, RefusesClustersThatCannotTrain) {
  const auto make = [](const std::vector<std::pair<std::string, int>>& jobs, const ClusterTask& task) {
    return [=] {
      const remote::LocalCluster cluster(jobs);
      const ParameterServerStrategy strategy(cluster.place(task));
    };
  };
  EXPECT_THAT(make({{"chief", 1}, {"worker", 1}}, kChief),
              ThrowsMessage<InvalidArgument>(HasSubstr("no ps")));
  EXPECT_THAT(make({{"chief", 1}, {"ps", 1}}, kChief),
              ThrowsMessage<InvalidArgument>(HasSubstr("no worker")));
  for (const ClusterTask& task : {kChief, kWorker, ClusterTask{"ps", 0}, ClusterTask{"evaluator", 0}}) {
    EXPECT_THAT(make({{"chief", 1}, {"worker", 1}, {"ps", 1}, {"evaluator", 1}}, task),
                ThrowsMessage<InvalidArgument>(HasSubstr("evaluator 0")));
  }
}

TEST(ParameterServerStrategy, RefusesWhatMakesNoSense) {
  const TaskProcesses tasks(0, 1);
  EXPECT_THROW(ParameterServerStrategy(tasks.chief(), {.staleness = -1}), InvalidArgument);
  EXPECT_THROW(ParameterServerStrategy(tasks.chief(), {.initial_values_timeout_seconds = -1}),
               InvalidArgument);
  const ParameterServerStrategy strategy(tasks.chief());
  EXPECT_THROW(static_cast<void>(serve(strategy)), WrongContext);
  auto scope = strategy.scope();
  const Variable weights({.shape = {2}, .name = "weights"});
  EXPECT_THROW(weights.assign(Tensor::zeros({3}, DType::kFloat32)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(weights.replica_component()), WrongContext);
}

}  // namespace
}  // namespace cohort
