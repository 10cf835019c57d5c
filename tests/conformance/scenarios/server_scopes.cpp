// Scopes of strategies with real servers: where the variables lie that are made within them, and how they
// begin.
#include <map>
#include <optional>
#include <vector>

#include <cohort/server/sharded_variable.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/value/device_scope.h>
#include <cohort/value/variable_creator_scope.h>

#include "common.h"
#include "server_threads.h"
#include "variables.h"

namespace cohort::conformance {
namespace {

// Scopes of strategies with real servers, and where the variables lie that are made within them.

constexpr std::string_view kMovesNothing = "a device scope moves no variable";

Json colocated(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief(),
                                         {.variable_partitioner = FixedShardsPartitioner(2)});
  const auto scope = strategy.scope();
  const Variable a({.name = "a"});
  const Variable b({.name = "b"});
  const auto beside = [&](const Variable& neighbour, std::int64_t rows) {
    const auto colocate = strategy.extended().colocate_vars_with(neighbour);
    return place_of(ShardedVariable({.shape = {rows}, .name = "beside"}));
  };
  const Json c = beside(a, 4);
  const Variable d({.name = "d"});
  const ShardedVariable table({.shape = {4}, .name = "sh"});
  const Json e = beside(table.variables()[1], 2);
  return {place_of(a), place_of(b), c, place_of(d), place_of(table), e};
}

Json created_by_creators(const Record& record) {
  const ServerThreads servers(servers_of(record));
  Json asked = Json::array();
  const auto noting = [&](const char* name) {
    return [&asked, name](const NextCreator& next, VariableOptions options) {
      asked.push_back(name);
      return next(std::move(options));
    };
  };
  const ParameterServerStrategy strategy(servers.chief());
  const VariableCreatorScope outside(noting("outer"));
  const auto scope = strategy.scope();
  const VariableCreatorScope inside(noting("inner"));
  const Variable variable({.name = "v"});
  return {asked, place_of(variable)};
}

Json in_nested_scopes(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief());
  const auto outer = strategy.scope();
  const auto inner = strategy.scope();
  return place_of(Variable({.name = "v"}));
}

Json on_devices(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief());
  const auto made_in = [&](std::optional<Device> outside, std::optional<Device> inside) {
    std::optional<DeviceScope> around;
    if (outside) around.emplace(*outside);
    const auto scope = strategy.scope();
    std::optional<DeviceScope> within;
    if (inside) within.emplace(*inside);
    return place_of(Variable({.name = "v"}));
  };
  const auto made_without = [&] {
    const Variable plain({.name = "plain"});
    return fmt::format("/job:{}/replica:0/task:{}/device:CPU:{}", strategy.task().type, strategy.task().id,
                       plain.components().front().device().index());
  };
  const Device cpu = Device::cpu(0);
  const Json in_turn{made_in({}, {}), made_in({}, cpu), made_in({}, cpu), made_in(cpu, {})};
  Json outcome = in_turn;
  {
    const DeviceScope on_cpu(cpu);
    outcome.push_back(made_without());
  }
  outcome.push_back(made_without());
  return outcome;
}

Json all_in_this_process(const Record& record) {
  Json outcome = record.outcome;
  outcome.at(4) = outcome.at(5);
  return outcome;
}

Json properties(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief());
  const StrategyExtended& extended = strategy.extended();
  const auto names = [](std::string_view prefix, std::span<const Device> devices) {
    Json list = Json::array();
    for (const Device device : devices)
      list.push_back(fmt::format("{}/device:CPU:{}", prefix, device.index()));
    return list;
  };
  const std::string task = fmt::format("/job:{}/replica:0/task:{}", strategy.task().type, strategy.task().id);
  return {strategy.num_replicas_in_sync(),
          names("", extended.worker_devices()),
          names(task, extended.parameter_devices()),
          extended.should_checkpoint(),
          extended.should_save_summary(),
          "NoneType"};
}

Json in_anothers_scope(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief());
  const auto outer = strategy.scope();
  const auto inner = OneDeviceStrategy(Device::cpu(0)).scope();
  return 1;
}

}  // namespace

std::vector<Family> server_scope_families() {
  return {
      {{"w2/placement/*/colocate"}, colocated},
      {{"w2/placement/*/creator_scopes"}, created_by_creators},
      {{"w2/placement/*/nested_scope_same"}, in_nested_scopes},
      {{"w2/placement/*/device_scopes"}, on_devices, {{"*", kMovesNothing, all_in_this_process}}},
      {{"w2/placement/*/properties"}, properties},
      {{"w2/placement/*/nested_scope_mirrored_inside"}, in_anothers_scope},
  };
}

namespace {

// What is made in the scope of a strategy with servers: initial values, kinds of variables, slots, turns.

constexpr std::string_view kNamesAreGiven = "shards have names of their own";
constexpr std::string_view kZero = "a variable begins at zero";
constexpr std::string_view kOwnState = "an optimizer's state is no variable of the program";
constexpr std::string_view kNoGraph = "there is no graph to build or to initialise";

std::string_view class_of(const Variable& variable) {
  return variable.state()->is_kept_elsewhere() ? "CachingVariable" : "another";
}

// ---- initial values: variables in two shards

/// 0 to 9 in five rows.
Tensor ten_numbers() { return tensor({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {5, 2}); }

/// Makes the variable, and notes what its initializer is called with.
using Creation = std::function<ShardedVariable(Json& calls)>;

ShardedVariable made_of_noted_value(Json& calls) {
  const auto initial = [&] {
    calls.push_back("plain");
    return ten_numbers();
  };
  return ShardedVariable({.name = "emb", .initial_value = initial()});
}

ShardedVariable made_of_slices(Json& calls) {
  return {{.shape = {5, 2}, .name = "emb"}, [&](const Shape& shard, std::int64_t first_row) {
            calls.push_back("plain");
            return ten_numbers().rows(first_row, first_row + shard[0]);
          }};
}

ShardedVariable made_of_parts(Json& calls) {
  const Shape whole{5, 2};
  return {{.shape = whole, .name = "emb"}, [&](const Shape& shard, std::int64_t first_row) {
            calls.push_back({whole.extents(), shard.extents(), {first_row, 0}});
            return Tensor::full(shard, DType::kFloat32, static_cast<double>(first_row));
          }};
}

Creation creation(const VariableOptions& options) {
  return [options](Json& /*calls*/) { return ShardedVariable(options); };
}

Creation creation_named(const std::string& name) {
  static const std::map<std::string, Creation> kCreations{
      {"tensor", creation({.name = "emb", .initial_value = ten_numbers()})},
      {"callable", made_of_noted_value},
      {"callable_shape_dtype", made_of_slices},
      {"partial_initializer", made_of_parts},
      {"noname", creation({.initial_value = Tensor::zeros({4, 1}, DType::kFloat32)})},
      {"list", creation({.initial_value = tensor({1, 2, 3}, {3, 1})})},
      {"int", creation({.initial_value = Tensor::from({1, 2, 3})})},
      {"scalar", creation({.initial_value = number(5)})},
      {"rank1_row1", creation({.initial_value = vector({7})})},
      {"not_trainable", creation({.initial_value = vector({0, 0, 0, 0}), .trainable = false})},
      {"none", creation({})}};
  return kCreations.at(name);
}

/// The original's name of a variable.
std::string shown_name(const std::string& name) { return name + ":0"; }

Json created(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief(),
                                         {.variable_partitioner = FixedShardsPartitioner(2)});
  const auto scope = strategy.scope();
  Json calls = Json::array();
  const ShardedVariable variable = creation_named(record.arguments.at("case").get<std::string>())(calls);
  const std::vector<Variable>& shards = variable.variables();
  Json outcome{{"initializer_calls", calls}};
  if (shards.size() == 1) {
    outcome["class"] = class_of(shards.front());
    outcome["name"] = shown_name(variable.name());
    outcome["values"] = handle(show(variable.read()));
    outcome["names"] = nullptr;
    return outcome;
  }
  outcome["class"] = "ShardedVariable";
  outcome["name"] = variable.name();
  for (const Variable& shard : shards) {
    outcome["values"].push_back(show(shard.read()));
    outcome["names"].push_back(shown_name(shard.name()));
  }
  return outcome;
}

Json with_given_names(const Record& record) {
  Json outcome = record.outcome;
  if (outcome.at("names").is_null()) {
    outcome["name"] = shown_name(VariableOptions().name);
    return outcome;
  }
  const bool named = outcome.at("names").front() == "emb/part_0:0";
  const std::string name = named ? "emb" : VariableOptions().name;
  outcome["name"] = name;
  outcome["names"] = {shown_name(name + "/part_0"), shown_name(name + "/part_1")};
  return outcome;
}

Json zero(const Record& /*record*/) {
  return {{"class", "CachingVariable"},
          {"name", shown_name(VariableOptions().name)},
          {"values", handle(0)},
          {"names", nullptr},
          {"initializer_calls", Json::array()}};
}

/// A table of 5 rows, as an embedding has.
Json embedding_made(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief(),
                                         {.variable_partitioner = FixedShardsPartitioner(2)});
  const auto scope = strategy.scope();
  const ShardedVariable table({.shape = {5, 2}, .name = "embedding"});
  return {"ShardedVariable", place_of(table)};
}

// ---- kinds of variables

VariableSynchronization synchronization_named(const Json& name) {
  for (const auto value :
       {VariableSynchronization::kNone, VariableSynchronization::kOnWrite, VariableSynchronization::kOnRead})
    if (name == name_of(value)) return value;
  return VariableSynchronization::kAuto;
}

VariableAggregation aggregation_named(const Json& name) {
  return *std::ranges::find_if(aggregations(),
                               [&](VariableAggregation value) { return name == name_of(value); });
}

Json of_kind(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief());
  const auto scope = strategy.scope();
  const Variable variable({.initial_value = number(1),
                           .synchronization = synchronization_named(record.arguments.at("synchronization")),
                           .aggregation = aggregation_named(record.arguments.at("aggregation"))});
  strategy.run([&](ReplicaContext& /*replica*/) { variable.assign_add(2.0F); });
  return {class_of(variable), show(variable.read()), variable.trainable()};
}

// ---- optimizers

/// The place of a kernel that is made after a scalar, and that of a variable that is made once the optimizer
/// has slots for the kernel.
template <class OptimizerType>
Json places_around_slots(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief());
  const auto scope = strategy.scope();
  const Variable scalar({.name = "scalar"});
  const Variable kernel({.shape = {3, 1}, .name = "kernel"});
  OptimizerType optimizer({.learning_rate = 0.1});
  strategy.run([&](ReplicaContext& /*replica*/) {
    optimizer.apply_gradients({{Tensor::zeros(kernel.shape(), kernel.dtype()), kernel}});
  });
  const Variable later({.name = "later"});
  return {place_of(kernel), place_of(later)};
}

Json places_with_slots(const Record& record) {
  return {places_around_slots<Momentum>(record), places_around_slots<Adam>(record)};
}

Json without_slots(const Record& record) {
  const int servers = servers_of(record);
  const Json places{Json::array({{1 % servers, 3}}), Json::array({{2 % servers, nullptr}})};
  return {places, places};
}

Json place_after_optimizer(const Record& record) {
  const ServerThreads servers(servers_of(record));
  const ParameterServerStrategy strategy(servers.chief());
  const auto scope = strategy.scope();
  const Sgd optimizer({.learning_rate = 0.1});
  return place_of(Variable({.name = "first"}));
}

// ---- names and turns, as the first version of variables had them

/// A table `w` on one server, in shards: [name, shape, first row and column] of each.
Json parts_made(const Record& record) {
  const ServerThreads servers(1);
  const ParameterServerStrategy strategy(
      servers.chief(), {.variable_partitioner = FixedShardsPartitioner(record.arguments.at("n").get<int>())});
  const auto scope = strategy.scope();
  const ShardedVariable table({.shape = {record.arguments.at("rows").get<std::int64_t>(), 2}, .name = "w"});
  Json parts = Json::array();
  for (int shard = 0; shard < table.layout().shards(); ++shard) {
    const Variable& part = table.variables()[static_cast<std::size_t>(shard)];
    parts.push_back({part.name(), part.shape().extents(), {table.layout().range(shard).begin, 0}});
  }
  return parts;
}

/// The devices of variables of these shapes.
Json devices_in_turn(int count, const std::vector<Shape>& shapes) {
  const ServerThreads servers(count);
  const ParameterServerStrategy strategy(servers.chief());
  const auto scope = strategy.scope();
  Json devices = Json::array();
  for (const Shape& shape : shapes)
    devices.push_back(fmt::format("/job:ps/task:{}", server_of(Variable({.shape = shape, .name = "v"}))));
  return devices;
}

Json devices_by_setter(const Record& record) {
  std::vector<Shape> shapes;
  for (const Json& extents : record.arguments.at("shapes"))
    shapes.emplace_back(extents.get<std::vector<std::int64_t>>());
  return devices_in_turn(record.arguments.at("n").get<int>(), shapes);
}

/// An operation has no device of its own.
Json devices_of_variables(const Record& record) { return record.outcome.front(); }

}  // namespace

std::vector<Family> server_creation_families() {
  return {
      {{"w2/placement/*/init_*"},
       created,
       {{"*/init_none", kZero, zero}, {"*", kNamesAreGiven, with_given_names}}},
      {{"w2/placement/*/keras_embedding"}, embedding_made},
      {{"w2/placement/*/kind_*"}, of_kind},
      {{"w2/placement/*/slots"}, places_with_slots, {{"*", kOwnState, without_slots}}},
      {{"w2/placement/*/optimizer_counter"},
       place_after_optimizer,
       {{"*", kOwnState,
         [](const Record& /*record*/) {
           return Json::array({{0, nullptr}});
         }}}},
      {{"w2/partitioner_v1/none/get_variable_*"}, parts_made},
      {{"w2/partitioner_v1/none/device_setter_cluster"},
       [](const Record& /*record*/) {
         return devices_in_turn(2, {{}, {}, {}});
       }},
      {{"w2/partitioner_v1/none/device_setter_1", "w2/partitioner_v1/none/device_setter_2",
        "w2/partitioner_v1/none/device_setter_3"},
       devices_by_setter,
       {{"*", kNoGraph, devices_of_variables}}},
  };
}

}  // namespace cohort::conformance
