// The first file's lines of strategies with servers: what they are, where their variables lie, and what they
// do outside the functions of a coordinator.
#include <numeric>
#include <optional>

#include <cohort/input/distribute.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/value/device_scope.h>

#include "../scenarios/server_threads.h"
#include "../scenarios/variables.h"
#include "coordinated.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kNamesAreGiven = "shards have names of their own";

std::string device_of(const Variable& variable) {
  return fmt::format("/job:ps/replica:0/task:{}/device:CPU:0", server_of(variable));
}

/// Of a variable that lies in this process.
std::string device_here(const ParameterServerStrategy& strategy, Device device) {
  return fmt::format("/job:{}/replica:0/task:{}/device:CPU:{}", strategy.task().type, strategy.task().id,
                     device.index());
}

Json properties(const ParameterServerStrategy& strategy) {
  Json workers = Json::array();
  for (const Device device : strategy.extended().worker_devices())
    workers.push_back(fmt::format("/device:CPU:{}", device.index()));
  Json parameters = Json::array();
  for (const Device device : strategy.extended().parameter_devices())
    parameters.push_back(device_here(strategy, device));
  return {strategy.num_replicas_in_sync(), workers, parameters, "NoneType"};
}

Json state_here(const ParameterServerStrategy& strategy) {
  const bool is_own = has_strategy() && get_strategy() == strategy;
  const ReplicaContext* replica = get_replica_context();
  Json context = nullptr;
  if (replica != nullptr) context = {"_DefaultReplicaContext", replica->replica_id_in_sync_group()};
  return {is_own ? "ParameterServerStrategyV2" : "_DefaultDistributionStrategy", has_strategy(), context,
          in_cross_replica_context()};
}

Json states(const ParameterServerStrategy& strategy) {
  const Json outside = state_here(strategy);
  const auto scope = strategy.scope();
  return {outside, state_here(strategy)};
}

// ---- where variables lie: each line with servers of its own, as many as its layout has

int count_of_servers(const Layout& layout) { return layout.prefix() == "ps11" ? 1 : 2; }

/// A strategy in whose scope `scalars` variables were made before what a line makes: servers take turns.
class OwnServers {
 public:
  OwnServers(const Layout& layout, Partitioner partitioner, int scalars = 0)
      : servers_(count_of_servers(layout)),
        strategy_(servers_.chief(), {.variable_partitioner = std::move(partitioner)}),
        scope_(strategy_.scope()) {
    for (int i = 0; i < scalars; ++i) made_before_.emplace_back(VariableOptions{.name = "before"});
  }

 private:
  ServerThreads servers_;
  ParameterServerStrategy strategy_;
  decltype(strategy_.scope()) scope_;
  std::vector<Variable> made_before_;
};

Json devices_of_scalars(const Layout& layout) {
  const OwnServers servers(layout, {});
  Json devices = Json::array();
  for (int i = 0; i < 5; ++i) devices.push_back(device_of(Variable({.name = "scalar"})));
  return devices;
}

Json table_in_shards(const Layout& layout) {
  const OwnServers servers(layout, FixedShardsPartitioner(2), 5);
  const ShardedVariable table({.shape = {5, 2}, .name = "emb"});
  Json outcome{"ShardedVariable", Json::array(), Json::array(), Json::array()};
  for (const Variable& shard : table.variables()) {
    outcome[1].push_back(shard.shape().extents());
    outcome[2].push_back(device_of(shard));
    outcome[3].push_back(shard.name());
  }
  return outcome;
}

Json table_with_given_names(const Layout& layout) {
  const std::string first =
      fmt::format("/job:ps/replica:0/task:{}/device:CPU:0", count_of_servers(layout) - 1);
  return {"ShardedVariable",
          {{3, 2}, {2, 2}},
          {first, "/job:ps/replica:0/task:0/device:CPU:0"},
          {"emb/part_0", "emb/part_1"}};
}

/// A variable that has fewer rows than there may be shards.
Json too_small_to_cut(const Layout& layout) {
  const OwnServers servers(layout, FixedShardsPartitioner(2));
  const ShardedVariable row({.shape = {1, 2}, .name = "row"});
  const std::vector<Variable>& shards = row.variables();
  return shards.size() == 1 && shards.front().state()->is_kept_elsewhere() ? "CachingVariable"
                                                                           : "ShardedVariable";
}

Json on_a_device(const Layout& layout) {
  const OwnServers servers(layout, {});
  const DeviceScope on_cpu(Device::cpu(0));
  return device_of(Variable({.name = "v"}));
}

/// Rows 0, 1, ... as [values of each shard, servers].
Json rows_in_shards(const Layout& layout, int rows, int shards, int scalars) {
  const OwnServers servers(layout, FixedShardsPartitioner(shards), scalars);
  std::vector<double> numbers(static_cast<std::size_t>(rows));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  const ShardedVariable table({.name = "rows", .initial_value = tensor(numbers, {rows, 1})});
  Json outcome{Json::array(), Json::array()};
  for (const Variable& shard : table.variables()) {
    outcome[0].push_back(show(shard.read()));
    outcome[1].push_back(fmt::format("task:{}", server_of(shard)));
  }
  return outcome;
}

/// An initializer that is told which rows it makes.
Json made_by_rows(const Layout& layout) {
  const OwnServers servers(layout, FixedShardsPartitioner(2));
  const ShardedVariable table({.shape = {5, 1}}, [](const Shape& shard, std::int64_t first_row) {
    std::vector<double> rows;
    for (std::int64_t row = 0; row < shard[0]; ++row) rows.push_back(static_cast<double>(first_row + row));
    return tensor(rows, shard);
  });
  Json shards = Json::array();
  for (const Variable& shard : table.variables()) shards.push_back(show(shard.read()));
  return shards;
}

Scenario bad_partitioner(const char* name, std::vector<int> counts) {
  return {fmt::format("bad_partitioner_{}", name), [counts = std::move(counts)](const Layout& layout) {
            const OwnServers servers(layout, [&](const Shape& /*shape*/, DType /*dtype*/) { return counts; });
            return Json(ShardedVariable({.shape = {4, 2}, .name = "v"}).variables().size());
          }};
}

// ---- outside the functions of a coordinator

Json input_context(const ParameterServerStrategy& strategy) {
  Json contexts = Json::array();
  const auto dataset = strategy.distribute_datasets_from_function([&](const InputContext& context) {
    contexts.push_back(
        {context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync});
    return Dataset<Tensor>::range(4);
  });
  return {contexts, show((*dataset.begin()).components().front())};
}

PerReplica<Tensor> threes(const ParameterServerStrategy& strategy, const Shape& shape) {
  return strategy.run([&] { return Tensor::full(shape, DType::kFloat32, 3); });
}

Json three_and_one(const ParameterServerStrategy& strategy) {
  return show(strategy.run([](ReplicaContext& replica) {
    return replica.merge_call(
        [](const Strategy&, const PerReplica<Tensor>& x) {
          return number(x.components().front().item<float>() + 1);
        },
        number(3));
  }));
}

/// A variable of 1 to which a replica adds 2.
Scenario counted_by_kind(VariableSynchronization synchronization, VariableAggregation aggregation,
                         const ParameterServerStrategy& strategy) {
  const VariableKind kind{synchronization, aggregation};
  return {"var_" + name_of(kind), [kind, &strategy](const Layout& /*layout*/) {
            const auto scope = strategy.scope();
            const Variable variable({.initial_value = number(1),
                                     .synchronization = kind.synchronization,
                                     .aggregation = kind.aggregation});
            strategy.run([&](ReplicaContext& /*replica*/) { variable.assign_add(2.0F); });
            return Json{variable.state()->is_kept_elsewhere() ? "CachingVariable" : "another",
                        show(variable.read())};
          }};
}

std::vector<Scenario> counts_by_kind(const ParameterServerStrategy& strategy) {
  using Synchronization = VariableSynchronization;
  using Aggregation = VariableAggregation;
  std::vector<Scenario> all;
  for (const auto& [synchronization, aggregation] :
       {std::pair(Synchronization::kAuto, Aggregation::kNone),
        std::pair(Synchronization::kAuto, Aggregation::kOnlyFirstReplica),
        std::pair(Synchronization::kNone, Aggregation::kNone),
        std::pair(Synchronization::kNone, Aggregation::kSum),
        std::pair(Synchronization::kNone, Aggregation::kOnlyFirstReplica),
        std::pair(Synchronization::kOnWrite, Aggregation::kSum),
        std::pair(Synchronization::kOnWrite, Aggregation::kMean),
        std::pair(Synchronization::kOnWrite, Aggregation::kOnlyFirstReplica),
        std::pair(Synchronization::kOnRead, Aggregation::kNone)}) {
    all.push_back(counted_by_kind(synchronization, aggregation, strategy));
  }
  return all;
}

}  // namespace

std::vector<Scenario> server_strategy_scenarios(const Coordinated& cluster) {
  const ParameterServerStrategy& strategy = cluster.strategy();
  const auto plays = [&](const char* name, const std::function<Json(const ParameterServerStrategy&)>& play) {
    return Scenario{name, [&strategy, play](const Layout& /*layout*/) { return play(strategy); }};
  };
  std::vector<Scenario> all{
      plays("props", properties),
      plays("state", states),
      {"scalar_placement", devices_of_scalars},
      {"sharded", table_in_shards, {{"", kNamesAreGiven, table_with_given_names}}},
      {"sharded_small", too_small_to_cut},
      {"device_scope_ignored", on_a_device},
      plays("out_of_scope",
            [](const ParameterServerStrategy& s) {
              return device_here(s, Variable({.name = "plain"}).components().front().device());
            }),
      plays("input_context", input_context),
      plays("run_outside", [](const ParameterServerStrategy& s) { return show(threes(s, {})); }),
      plays("reduce_outside",
            [](const ParameterServerStrategy& s) { return show(s.reduce(ReduceOp::kSum, threes(s, {}))); }),
      plays("gather", [](const ParameterServerStrategy& s) { return show(s.gather(threes(s, {1}), 0)); }),
      plays("all_reduce",
            [](const ParameterServerStrategy& s) {
              return show(s.run([](ReplicaContext& r) { return r.all_reduce(ReduceOp::kSum, number(3)); }));
            }),
      plays("merge_call", three_and_one),
      plays("nested_scope_other",
            [](const ParameterServerStrategy& s) {
              const auto outer = s.scope();
              const auto inner = MirroredStrategy(cpu_devices(2)).scope();
              return Json(true);
            }),
      bad_partitioner("empty", {}),
      bad_partitioner("zero", {0, 1}),
      bad_partitioner("two_axes", {2, 2}),
      // The turn of servers went on after what the recording had made before.
      {"partition_rows10_p4", [](const Layout& layout) { return rows_in_shards(layout, 10, 4, 0); }},
      {"partition_rows7_p7", [](const Layout& layout) { return rows_in_shards(layout, 7, 7, 1); }},
      {"sharded_init_fn", made_by_rows},
  };
  for (Scenario& scenario : counts_by_kind(strategy)) all.push_back(std::move(scenario));
  return all;
}

}  // namespace cohort::conformance
