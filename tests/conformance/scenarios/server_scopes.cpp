// Scopes of strategies with real servers, and where the variables lie that are made within them.
#include <optional>
#include <vector>

#include <cohort/strategy/one_device_strategy.h>
#include <cohort/value/device_scope.h>
#include <cohort/value/variable_creator_scope.h>

#include "common.h"
#include "server_threads.h"

namespace cohort::conformance {
namespace {

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

}  // namespace cohort::conformance
