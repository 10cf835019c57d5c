// How strategies and cross-device operations are made, and how options and values print.
#include <algorithm>
#include <cctype>
#include <sstream>

#include <cohort/base/config.h>
#include <cohort/collective/communication_options.h>
#include <cohort/input/input_options.h>
#include <cohort/remote/local_cluster.h>
#include <cohort/resolvers/tf_config_cluster_resolver.h>
#include <cohort/server/parameter_server_strategy.h>
#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/hierarchical_copy_all_reduce.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/nccl_all_reduce.h>
#include <cohort/strategy/one_device_strategy.h>

#include "common.h"

namespace cohort::conformance {
namespace {

// How strategies and cross-device operations are made: defaults, and what they refuse.

constexpr std::string_view kDevicesExist = "devices exist";
constexpr std::string_view kDevicesBySetting = "the settings say how many devices there are";

Json refused(const Layout& /*l*/) { return an_error(); }

/// The number of replicas of a MirroredStrategy on the devices of these names.
Scenario mirrored(const std::string& name, const std::vector<std::string>& devices,
                  std::vector<Difference> differences = {}) {
  return {"ctor/mirrored_" + name,
          [=](const Layout& /*l*/) {
            std::vector<Device> parsed;
            parsed.reserve(devices.size());
            for (const std::string& device : devices) parsed.push_back(Device::parse(device));
            return Json(MirroredStrategy(parsed).num_replicas_in_sync());
          },
          std::move(differences)};
}

template <class Operations>
Scenario packs(const std::string& name, int num_packs) {
  return {fmt::format("ctor/{}_{}", name, num_packs),
          [=](const Layout& /*l*/) { return Json(Operations({.num_packs = num_packs}).name()); }};
}

Scenario task(const std::string& name, const std::optional<std::string>& type, std::optional<int> id) {
  return {"ctor/mwms_" + name, [=](const Layout& /*l*/) {
            const ClusterSpec spec{{"worker", {"n0:1", "n1:1"}}, {"ps", {"n2:1"}}};
            const MultiWorkerMirroredStrategy strategy(SimpleClusterResolver(spec, type, id));
            return Json(strategy.num_replicas_in_sync());
          }};
}

Json made_for(const remote::TaskPlace& place) {
  return ParameterServerStrategy(place).num_replicas_in_sync();
}

/// A strategy with servers, of one task of a cluster of these jobs.
Scenario servers(const std::string& name, const std::vector<std::pair<std::string, int>>& jobs,
                 const ClusterTask& task) {
  return {"ctor/ps_" + name,
          [=](const Layout& /*l*/) { return made_for(remote::LocalCluster(jobs).place(task)); }};
}

}  // namespace

std::vector<Scenario> constructor_scenarios() {
  return {
      mirrored("empty", {},
               {{"", kDevicesBySetting, [](const Layout& /*l*/) { return Json(config().cpu_devices()); }}}),
      mirrored("dup", {"/cpu:0", "/device:CPU:0"}),
      mirrored("unknown_device", {"/cpu:7"}),
      mirrored("gpu_absent", {"/gpu:0"}, {{"", kDevicesExist, refused}}),
      {"ctor/mirrored_default",
       [](const Layout& l) { return device_names(l, MirroredStrategy().extended().worker_devices()); },
       {{"", kDevicesBySetting,
         [](const Layout& l) { return device_names(l, cpu_devices(config().cpu_devices())); }}}},
      {"ctor/onedevice_bad",
       [](const Layout& l) {
         const OneDeviceStrategy strategy(Device::parse("/gpu:0"));
         const auto scope = strategy.scope();
         return device_name(l, Variable({.initial_value = number(1)}).components()[0].device());
       },
       {{"", kDevicesExist, refused}}},
      {"ctor/onedevice_none",
       [](const Layout& l) { return device_names(l, OneDeviceStrategy().extended().worker_devices()); }},
      {"ctor/central_default",
       [](const Layout& l) {
         const CentralStorageStrategy strategy;
         return Json{strategy.num_replicas_in_sync(), device_names(l, strategy.extended().worker_devices()),
                     device_names(l, strategy.extended().parameter_devices())};
       }},
      {"ctor/mwms_empty",
       [](const Layout& l) {
         const MultiWorkerMirroredStrategy strategy(TfConfigClusterResolver({}, Environment()));
         return Json{strategy.num_replicas_in_sync(), device_names(l, strategy.extended().worker_devices()),
                     strategy.extended().should_checkpoint()};
       },
       {{"", "the program keeps its resolver",
         [](const Layout& l) {
           return Json{1, device_names(l, cpu_devices(1)), true};
         }}}},
      task("no_task", std::nullopt, std::nullopt),
      task("bad_task", "ps", 0),
      {"ctor/ps_empty", [](const Layout& /*l*/) { return made_for({}); }},
      servers("no_ps", {{"chief", 1}, {"worker", 1}}, {"chief", 0}),
      servers("no_worker", {{"chief", 1}, {"ps", 1}}, {"chief", 0}),
      servers("bad_job", {{"worker", 1}, {"ps", 1}, {"evaluator", 1}}, {"worker", 0}),
      packs<NcclAllReduce>("NcclAllReduce", -1),
      packs<NcclAllReduce>("NcclAllReduce", 0),
      packs<HierarchicalCopyAllReduce>("HierarchicalCopyAllReduce", -1),
      packs<HierarchicalCopyAllReduce>("HierarchicalCopyAllReduce", 0),
  };
}

namespace {

// The enumerations of options, and how values print.

template <class Enumeration>
std::string upper_case_name(Enumeration value) {
  std::string name(to_string(value));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

/// [name, number] of each.
template <class Enumeration>
Json numbered(std::initializer_list<Enumeration> values) {
  Json list = Json::array();
  for (const Enumeration value : values) list.push_back({upper_case_name(value), static_cast<int>(value)});
  return list;
}

/// [name, value] of each, where values are names.
template <class Enumeration>
Json named(std::initializer_list<Enumeration> values) {
  Json list = Json::array();
  for (const Enumeration value : values) list.push_back({upper_case_name(value), upper_case_name(value)});
  return list;
}

}  // namespace

std::vector<Scenario> name_scenarios() {
  return {
      {"enums/sync",
       [](const Layout& /*l*/) {
         return numbered({VariableSynchronization::kAuto, VariableSynchronization::kNone,
                          VariableSynchronization::kOnWrite, VariableSynchronization::kOnRead});
       }},
      {"enums/agg",
       [](const Layout& /*l*/) {
         return numbered({VariableAggregation::kNone, VariableAggregation::kSum, VariableAggregation::kMean,
                          VariableAggregation::kOnlyFirstReplica});
       }},
      {"enums/comm",
       [](const Layout& /*l*/) {
         return named({CommunicationImplementation::kAuto, CommunicationImplementation::kRing,
                       CommunicationImplementation::kNccl});
       }},
      {"enums/repl_mode",
       [](const Layout& /*l*/) {
         return named({InputReplicationMode::kPerWorker, InputReplicationMode::kPerReplica});
       }},
      {"valuecontext/repr",
       [](const Layout& /*l*/) {
         std::ostringstream text;
         text << ValueContext{.replica_id_in_sync_group = 1, .num_replicas_in_sync = 4};
         return Json(text.str());
       },
       {{"", "names without a module",
         [](const Layout& /*l*/) { return Json("ValueContext(replica id 1, total replicas in sync: 4)"); }}}},
  };
}

}  // namespace cohort::conformance
