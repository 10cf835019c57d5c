#include "worker_contracts.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/input/distribute.h>
#include <cohort/input/make_dataset.h>
#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/moving_average.h>
#include <cohort/train/optimizers/sgd.h>

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr CommunicationOptions kPatience{.timeout_seconds = 60};

Tensor pair_of(float value) { return Tensor::from({value, value}); }
Tensor square() { return Tensor::zeros({2, 2}, DType::kFloat32); }
IndexedSlices row() { return {pair_of(1).reshape({1, 2}), Tensor::from({0}), {2, 2}}; }

/// What both sides of a try have: a strategy, and variables of one form.
struct Scene {
  explicit Scene(Strategy own) : strategy(std::move(own)) {
    const auto scope = strategy.scope();
    const auto make = [](const char* name, VariableAggregation aggregation, bool is_on_read = false) {
      return Variable(
          {.name = name,
           .initial_value = square(),
           .synchronization = is_on_read ? VariableSynchronization::kOnRead : VariableSynchronization::kAuto,
           .aggregation = aggregation});
    };
    v.emplace(make("v", VariableAggregation::kSum));
    w.emplace(make("w", VariableAggregation::kSum));
    first.emplace(make("first", VariableAggregation::kOnlyFirstReplica));
    if (strategy.extended().variable_placement() == VariablePlacement::kSingleCopy) return;
    on_read.emplace(make("seen", VariableAggregation::kSum, true));
    on_read_too.emplace(make("lost", VariableAggregation::kSum, true));
  }

  Strategy strategy;
  std::optional<Variable> v, w, first, on_read, on_read_too;
  std::optional<DistributedIterator<Tensor>> steps = {};
};

/// A collective, and what a message says of it.
template <class Where>
struct Operation {
  std::string words;
  std::function<void(Scene&, Where&)> call;
};

using InReplica = Operation<ReplicaContext>;

std::vector<InReplica> reductions_in_replicas() {
  std::vector<InReplica> operations;
  const auto add = [&](std::string words, auto call) {
    operations.push_back({std::move(words), [call](Scene& scene, ReplicaContext& r) { call(scene, r); }});
  };
  using S = Scene&;
  using R = ReplicaContext&;
  const std::vector<Tensor> none;
  using Named = std::map<std::string, Tensor>;
  add("all_reduces (sum) float32[2, 2]", [](S, R r) { static_cast<void>(r.all_reduce("sum", square())); });
  add("all_reduces (mean) float32[2, 2]", [](S, R r) { static_cast<void>(r.all_reduce("mean", square())); });
  add("all_reduces (sum) float32[4]",
      [](S, R r) { static_cast<void>(r.all_reduce("sum", square().reshape({4}))); });
  add("all_reduces (sum) {}", [=](S, R r) { static_cast<void>(r.all_reduce("sum", none)); });
  add("all_reduces (sum) {a: float32[2, 2]}", [](S, R r) {
    static_cast<void>(r.all_reduce("sum", Named{{"a", square()}}));
  });
  add("all_reduces (sum) {b: float32[2, 2]}", [](S, R r) {
    static_cast<void>(r.all_reduce("sum", Named{{"b", square()}}));
  });
  add("all_reduces (sum) 1 rows of float32[2, 2]",
      [](S, R r) { static_cast<void>(r.all_reduce("sum", row())); });
  add("all_reduces in place (sum) {float32[2, 2]}", [](S, R r) {
    const Tensor tensors[] = {square()};
    r.all_reduce_in_place(ReduceOp::kSum, tensors);
  });
  add("all_reduces in place (sum) {}", [](S, R r) { r.all_reduce_in_place(ReduceOp::kSum, {}); });
  add("all_gathers float32[2, 2] along axis 0", [](S, R r) { static_cast<void>(r.all_gather(square(), 0)); });
  add("all_gathers float32[2, 2] along axis 1", [](S, R r) { static_cast<void>(r.all_gather(square(), 1)); });
  add("all_gathers {} along axis 0", [=](S, R r) { static_cast<void>(r.all_gather(none, 0)); });
  add("reduce_scatters (sum) float32", [](S, R r) {
    const Tensor part = Tensor::zeros({1, 2}, DType::kFloat32);
    const Tensor all = Tensor::zeros({r.num_replicas_in_sync(), 2}, DType::kFloat32);
    static_cast<void>(r.reduce_scatter("sum", all, part, 0));
  });
  return operations;
}

std::vector<InReplica> updates_in_replicas() {
  std::vector<InReplica> operations;
  const auto add = [&](std::string words, auto call) {
    operations.push_back({std::move(words), [call](Scene& scene, ReplicaContext&) { call(scene); }});
  };
  using S = Scene&;
  add("assigns v", [](S s) { s.v->assign(square()); });
  add("assigns w", [](S s) { s.w->assign(square()); });
  add("assigns first", [](S s) { s.first->assign(square()); });
  add("assign_adds v", [](S s) { s.v->assign_add(square()); });
  add("assign_subs v", [](S s) { s.v->assign_sub(square()); });
  add("scatter_adds v", [](S s) { s.v->scatter_add(row()); });
  add("scatter_subs v", [](S s) { s.v->scatter_sub(row()); });
  add("scatter_muls w", [](S s) { s.w->scatter_mul(row()); });
  add("scatter_updates first", [](S s) { s.first->scatter_update(row()); });
  add("applies gradients of v, w", [](S s) { Sgd().apply_gradients({{square(), *s.v}, {square(), *s.w}}); });
  add("applies gradients of w, v", [](S s) { Sgd().apply_gradients({{square(), *s.w}, {square(), *s.v}}); });
  add("applies gradients of no variables", [](S) { Sgd().apply_gradients({}); });
  return operations;
}

/// Of variables with one copy, the replicas meet to reduce, and then to update the variable.
std::vector<InReplica> averages_in_replicas() {
  return {{"assigns the moving average v",
           [](Scene& s, ReplicaContext&) { assign_moving_average(*s.v, square(), 0.5); }},
          {"assigns the moving average w",
           [](Scene& s, ReplicaContext&) { assign_moving_average(*s.w, square(), 0.5); }}};
}

/// In these the replicas of one process pause, whatever those of others do.
std::vector<InReplica> meetings_of_replicas() {
  std::vector<InReplica> operations;
  const auto add = [&](std::string words, auto call) {
    operations.push_back({std::move(words), [call](Scene& scene, ReplicaContext& r) { call(scene, r); }});
  };
  using S = Scene&;
  using R = ReplicaContext&;
  add("calls merge_call", [](S, R r) { r.merge_call([](const Strategy&) {}); });
  add("updates v", [](S s, R) { s.strategy.extended().update(*s.v, [](const Variable&) {}); });
  add("updates w", [](S s, R) { s.strategy.extended().update(*s.w, [](const Variable&) {}); });
  add("makes variable a (float32[2, 2]", [](S, R) {
    static_cast<void>(Variable({.shape = {2, 2}, .name = "a"}));
  });
  add("makes variable b (float32[2, 2]", [](S, R) {
    static_cast<void>(Variable({.shape = {2, 2}, .name = "b"}));
  });
  add("makes variable a (float32[4]", [](S, R) { static_cast<void>(Variable({.shape = {4}, .name = "a"})); });
  add("returned from the replica function", [](S, R) {});
  return operations;
}

using OnWorker = Operation<const Bootstrap>;

std::vector<OnWorker> operations_of_workers() {
  std::vector<OnWorker> operations;
  const auto add = [&](std::string words, auto call) {
    operations.push_back({std::move(words), [call](Scene& scene, const Bootstrap&) { call(scene); }});
  };
  using S = Scene&;
  const auto values = [](S s) { return s.strategy.run([] { return square(); }); };
  add("reduces (sum) float32[2, 2]", [=](S s) { static_cast<void>(s.strategy.reduce("sum", values(s))); });
  add("reduces (mean) float32[2, 2]", [=](S s) { static_cast<void>(s.strategy.reduce("mean", values(s))); });
  add("reduces (sum) {}", [=](S s) {
    static_cast<void>(s.strategy.reduce("sum", s.strategy.run([] { return std::vector<Tensor>(); })));
  });
  add("reduces (sum) float32[2, 2] along axis 0",
      [=](S s) { static_cast<void>(s.strategy.reduce("sum", values(s), 0)); });
  add("reduces (sum) float32[2, 2] along axis 1",
      [=](S s) { static_cast<void>(s.strategy.reduce("sum", values(s), 1)); });
  add("reduces (sum) 2 values: float32[2, 2], float32[2, 2]", [=](S s) {
    const std::vector<std::pair<PerReplica<Tensor>, Destinations>> pairs(2, {values(s), Device()});
    static_cast<void>(s.strategy.extended().batch_reduce_to("sum", pairs));
  });
  add("gathers float32[2, 2] along axis 0", [=](S s) { static_cast<void>(s.strategy.gather(values(s), 0)); });
  add("gathers float32[2, 2] along axis 1", [=](S s) { static_cast<void>(s.strategy.gather(values(s), 1)); });
  const auto add_of_variable = [&](const std::string& name, std::optional<Variable> Scene::*variable) {
    add(fmt::format("reduces (sum) {} (variable number", name),
        [=](S s) { static_cast<void>(s.strategy.reduce("sum", *(s.*variable))); });
    add("reduces (sum) float32[2, 2] along axis 0",
        [=](S s) { static_cast<void>(s.strategy.reduce("sum", *(s.*variable), 0)); });
    add(fmt::format("gathers {} (variable number", name),
        [=](S s) { static_cast<void>(s.strategy.gather(*(s.*variable), 0)); });
  };
  add_of_variable("seen", &Scene::on_read);
  add_of_variable("lost", &Scene::on_read_too);
  add("reads seen", [](S s) { static_cast<void>(s.on_read->read()); });
  add("reads lost", [](S s) { static_cast<void>(s.on_read_too->read()); });
  const auto make = [&](const std::string& words, const VariableOptions& options) {
    add(words, [options](S s) {
      const auto scope = s.strategy.scope();
      static_cast<void>(Variable(options));
    });
  };
  make("makes variable a (float32[2, 3]", {.shape = {2, 3}, .name = "a"});
  make("makes variable b (float32[2, 3]", {.shape = {2, 3}, .name = "b"});
  make("makes variable a (float32[3, 2]", {.shape = {3, 2}, .name = "a"});
  make("synchronization on_read",
       {.shape = {2, 3}, .name = "a", .synchronization = VariableSynchronization::kOnRead});
  const auto iterate = [&](const std::string& words, AutoShardPolicy policy, std::int64_t batch) {
    add(words, [=](S s) {
      const auto dataset = s.strategy.distribute_dataset(
          Dataset<Tensor>::range(12).batch(batch),
          {.auto_shard_policy = policy, .input = {.per_replica_buffer_size = 0}});
      static_cast<void>(dataset.iterate());
    });
  };
  iterate("begins a pass over a distributed dataset in batches of 4, by AutoShardPolicy::kData",
          AutoShardPolicy::kData, 4);
  iterate("begins a pass over a distributed dataset in batches of 6, by AutoShardPolicy::kData",
          AutoShardPolicy::kData, 6);
  iterate("begins a pass over a distributed dataset by AutoShardPolicy::kOff", AutoShardPolicy::kOff, 4);
  add("takes a step of a distributed dataset",
      [](S s) { static_cast<void>(s.steps->get_next_as_optional()); });
  return operations;
}

/// What `call` throws, or nothing.
template <class Call>
std::string message_of_any(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

/// The operations of replicas on the workers of one device each.
OnWorker as_worker(const InReplica& operation) {
  return {operation.words, [call = operation.call](Scene& scene, const Bootstrap&) {
            scene.strategy.run([&](ReplicaContext& replica) { call(scene, replica); });
          }};
}

template <class T>
void append(std::vector<T>& to, std::vector<T> more) {
  for (T& element : more) to.push_back(std::move(element));
}

/// Each pair with different numbers of the odd one, in turn.
template <class Try>
void for_each_pair(std::size_t operations, int members, Try attempt) {
  int odd = 0;
  for (std::size_t one = 0; one < operations; ++one) {
    for (std::size_t other = 0; other < operations; ++other) {
      // Among three, which of the two is the odd one matters; either is, in turn.
      const bool in_turn = (one + other) % 2 == 0 ? one < other : other < one;
      if (members > 2 ? in_turn : one < other) attempt(one, other, odd++ % members);
    }
  }
}

void check_replicas_of(const std::function<Strategy()>& make, int replicas,
                       const std::vector<InReplica>& operations) {
  Scene scene(make());
  for_each_pair(operations.size(), replicas, [&](std::size_t one, std::size_t other, int odd) {
    const std::string text = message_of_any([&] {
      scene.strategy.run([&](ReplicaContext& replica) {
        const bool is_odd = replica.replica_id_in_sync_group() == odd;
        operations[is_odd ? one : other].call(scene, replica);
      });
    });
    EXPECT_THAT(text, AllOf(HasSubstr(operations[one].words), HasSubstr(operations[other].words),
                            HasSubstr(fmt::format("replica {} (worker 0, host ", odd)),
                            HasSubstr(fmt::format(", cpu:{})", odd)), Not(HasSubstr("layout"))))
        << "replica " << odd << ": " << operations[one].words << ", others: " << operations[other].words;
  });
}

}  // namespace

void check_odd_replicas(int replicas) {
  const std::vector<Device> devices = cpu_devices(replicas);
  std::vector<InReplica> operations = reductions_in_replicas();
  append(operations, updates_in_replicas());
  append(operations, averages_in_replicas());
  append(operations, meetings_of_replicas());
  check_replicas_of([&] { return MirroredStrategy(devices, kPatience); }, replicas, operations);
  if (replicas > 2) return;
  operations = updates_in_replicas();
  append(operations, meetings_of_replicas());
  operations.push_back(reductions_in_replicas().front());
  check_replicas_of([&] { return CentralStorageStrategy(devices, {}, kPatience); }, replicas, operations);
}

void check_odd_workers(Bootstrap& worker, int devices, const OddWorkers& options) {
  if (worker.size() == 1) return;
  std::vector<OnWorker> operations = operations_of_workers();
  const std::size_t of_workers = operations.size();
  std::vector<InReplica> in_replicas = reductions_in_replicas();
  append(in_replicas, updates_in_replicas());
  append(in_replicas, averages_in_replicas());
  in_replicas.push_back(
      {"called barrier()", [](Scene&, ReplicaContext& replica) { replica.communicator().barrier(); }});
  for (const InReplica& operation : in_replicas) operations.push_back(as_worker(operation));
  for_each_pair(operations.size(), 2, [&, tries = 0](std::size_t one, std::size_t other, int) mutable {
    const int number = tries++;
    // Operations of replicas beside each other are the other table's; a few of them are enough here.
    const bool both_in_replicas = one >= of_workers && other >= of_workers;
    if (number % (both_in_replicas ? 4 * options.every : options.every) != 0) return;
    const int odd = number % worker.size();
    const bool is_odd = worker.rank() == odd;
    Scene scene(MultiWorkerMirroredStrategy(worker, kPatience, cpu_devices(devices)));
    scene.steps.emplace(scene.strategy
                            .distribute_dataset(Dataset<Tensor>::range(12).batch(6),
                                                {.auto_shard_policy = AutoShardPolicy::kOff,
                                                 .input = {.per_replica_buffer_size = 0}})
                            .iterate());
    const std::string text = message_of_any([&] { operations[is_odd ? one : other].call(scene, worker); });
    EXPECT_THAT(text, AllOf(HasSubstr(operations[one].words), HasSubstr(operations[other].words),
                            HasSubstr(fmt::format("worker {}", options.are_known ? odd : 0)),
                            HasSubstr("host "), Not(HasSubstr("layout"))))
        << "worker " << odd << ": " << operations[one].words << ", others: " << operations[other].words;
  });
}

void check_variable_names(Bootstrap& worker, int devices) {
  const bool is_odd = worker.rank() == worker.size() - 1;
  const auto strategy = [&] { return MultiWorkerMirroredStrategy(worker, kPatience, cpu_devices(devices)); };
  const auto make_two = [&](const Strategy& own, bool may_differ) {
    const auto scope = own.scope();
    for (const char* name : {is_odd ? "b" : "a", is_odd ? "a" : "b"})
      static_cast<void>(Variable({.shape = {2}, .name = name, .name_may_differ = may_differ}));
  };
  EXPECT_NO_THROW(make_two(strategy(), true));
  if (worker.size() == 1) return;
  EXPECT_THAT(message_of_any([&] { make_two(strategy(), false); }),
              AllOf(HasSubstr("makes variable a (float32[2]"), HasSubstr("makes variable b (float32[2]"),
                    ContainsRegex("worker [0-9]+ \\(host ")));
}

void check_odd_datasets(Bootstrap& worker, int devices) {
  if (worker.size() == 1) return;
  const int odd = worker.size() - 1;
  const auto pass = [&](const Dataset<Tensor>& dataset) {
    const MultiWorkerMirroredStrategy strategy(worker, kPatience, cpu_devices(devices));
    int steps = 0;
    return message_of_any([&] {
      for (const auto& batch :
           strategy.distribute_dataset(dataset, {.auto_shard_policy = AutoShardPolicy::kData})) {
        static_cast<void>(batch);
        static_cast<void>(strategy.reduce("sum", strategy.run([] { return 1.0; })));
        ++steps;
      }
    });
  };
  const bool is_odd = worker.rank() == odd;
  const std::string name = fmt::format("worker {} (host ", odd);
  EXPECT_THAT(pass(Dataset<Tensor>::range(is_odd ? 24 : 36).batch(6)),
              AllOf(HasSubstr(name), HasSubstr("has 4 batches"), HasSubstr("6")));
  // Nobody knows how long these are.
  const auto keep = [](const Tensor&) { return true; };
  EXPECT_THAT(pass(Dataset<Tensor>::range(is_odd ? 24 : 36).filter(keep).batch(6)),
              AllOf(HasSubstr("worker "), HasSubstr("ends its pass over a distributed dataset after 4 steps"),
                    HasSubstr("reduces (sum) float64")));
}

}  // namespace cohort::testing
