#include "facts.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>
#include <cohort/base/version.h>
#include <cohort/device/device.h>

#include "collective/choice/selection.h"
#include "device/machine.h"
#include "device/node_heap.h"

namespace cohort::info {
namespace {

using Json = nlohmann::ordered_json;

std::vector<DeviceFacts> gather_devices(int count) {
  const std::vector<Core> cores = allowed_cores();
  std::vector<DeviceFacts> devices;
  for (const std::vector<int>& group : split_cores(cores, count)) {
    std::set<int> nodes;
    for (const Core& core : cores) {
      if (std::find(group.begin(), group.end(), core.os_index) != group.end()) nodes.insert(core.numa_node);
    }
    const int index = static_cast<int>(devices.size());
    devices.push_back({to_string(Device::cpu(index)), group, {nodes.begin(), nodes.end()}});
  }
  return devices;
}

MemoryFacts gather_memory(const Config& settings) {
  const NodeHeap* heap = NodeHeap::of_this_process();
  return {.node_heap_bytes = heap == nullptr ? std::nullopt : std::optional(heap->bytes()),
          .huge_pages = settings.huge_pages()};
}

/// Why a setting's file cannot be written; empty where it can, or where there is none.
std::string why_not_writable(const std::filesystem::path& file) {
  if (file.empty()) return {};
  if (std::filesystem::is_directory(file)) return "this is a folder; name a file";
  // A file that is not there yet is made beside the others of its folder.
  const bool exists = ::access(file.c_str(), F_OK) == 0;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const std::filesystem::path& needed = exists ? file : folder;
  if (::access(needed.c_str(), R_OK | W_OK) == 0) return {};
  return fmt::format("{} cannot be written: {}", needed.string(), std::strerror(errno));
}

}  // namespace

Facts gather() {
  const Config& settings = config();
  return {
      .version = COHORT_VERSION,
      .build_type = COHORT_INFO_BUILD_TYPE,
      .compiler = COHORT_INFO_COMPILER,
      .components = gather_components(),
      .mpi_library = mpi::library_version(),
      .mpi_abi = COHORT_INFO_MPI_ABI,
      .devices = gather_devices(settings.cpu_devices()),
      .gpus = gather_gpus(),
      .nccl = gather_nccl(),
      .memory = gather_memory(settings),
      .settings = {settings.settings().begin(), settings.settings().end()},
  };
}

std::vector<std::string> wrong_settings() {
  std::vector<std::string> wrong;
  try {
    static_cast<void>(Selection(config().algorithm(), {}));
  } catch (const InvalidArgument& error) {
    wrong.push_back(fmt::format("{}, or one that the program registers", error.what()));
  }
  try {
    static_cast<void>(Machine::read(config().topology()));
  } catch (const InvalidArgument& error) {
    wrong.push_back(fmt::format("COHORT_TOPOLOGY={}: {}", config().topology(), error.what()));
  } catch (const Unavailable&) {
    // Without hwloc's help members count as near to each other; nothing about the setting is wrong.
  }
  for (const auto& [name, file] : {std::pair("COHORT_TUNING_FILE", config().tuning_file()),
                                   std::pair("COHORT_REPORT", config().report())}) {
    if (const std::string why = why_not_writable(file); !why.empty())
      wrong.push_back(fmt::format("{}={}: {}", name, file, why));
  }
  return wrong;
}

TuningFacts gather_tuning(int argc, char** argv) {
  mpi::Session session(argc, argv);
  return {.workers = session.size(),
          .nodes = std::ranges::max(session.workers(), {}, &WorkerInfo::node).node + 1,
          .forced = config().algorithm(),
          .figures = session.tuning()};
}

// For people.

namespace {

std::string describe(const DeviceFacts& device) {
  return fmt::format("  {:<8} {} {}, NUMA {} {}\n", device.name, device.cores.size() == 1 ? "core" : "cores",
                     fmt::join(device.cores, " "), device.numa_nodes.size() == 1 ? "node" : "nodes",
                     fmt::join(device.numa_nodes, " "));
}

std::string describe(const GpuFacts& gpu) {
  const std::string peers = gpu.peers.empty() ? "no other GPU's memory"
                                              : fmt::format("the memory of {}", fmt::join(gpu.peers, " "));
  return fmt::format("  {:<8} {}, {} MiB, compute capability {}, at {}, reaches {}{}\n", gpu.name, gpu.model,
                     gpu.memory_bytes >> 20, gpu.compute_capability, gpu.bus_id, peers,
                     gpu.has_memory_pools ? "" : "; cannot be used: it has no memory pools");
}

std::string describe(const AllGpus& gpus) {
  if (gpus.list.empty()) return fmt::format("  no GPU   {}\n", gpus.why_none);
  std::string text;
  for (const GpuFacts& gpu : gpus.list) text += describe(gpu);
  return text;
}

std::string describe(const NcclFacts& nccl) {
  if (!nccl.why_none.empty()) return fmt::format("  none: {}\n", nccl.why_none);
  return fmt::format("  NCCL {} from {}\n", nccl.version, nccl.path);
}

std::string describe(const MemoryFacts& memory) {
  const std::string heap = memory.node_heap_bytes ? fmt::format("{} MiB, shared with the node's processes",
                                                                *memory.node_heap_bytes >> 20)
                                                  : "off: tensors are private";
  return fmt::format("  node heap  {}\n  huge pages {}\n", heap, memory.huge_pages ? "on" : "off");
}

/// For example `choice, debug|info|warning`.
std::string describe_type(const SettingSpec& spec) {
  if (spec.type != SettingType::kChoice) return std::string(to_string(spec.type));
  return fmt::format("{}, {}", to_string(spec.type), spec.choices);
}

std::string describe(const Setting& setting) {
  return fmt::format("  {}={}  ({}; {})\n      {}\n", setting.spec.name, setting.value,
                     setting.from_environment ? "from the environment" : "default",
                     describe_type(setting.spec), setting.spec.text);
}

}  // namespace

std::string to_text(const TuningFacts& facts) {
  std::string text = fmt::format("Tuning of {} {} on {} {}, COHORT_ALGORITHM={}\n", facts.workers,
                                 facts.workers == 1 ? "worker" : "workers", facts.nodes,
                                 facts.nodes == 1 ? "node" : "nodes", facts.forced);
  for (const TuningFigure& figure : facts.figures)
    text += fmt::format("  {:<26} {:<10.7g} {:<9} {}\n", figure.name, figure.value, to_string(figure.source),
                        figure.text);
  return text;
}

std::string to_text(const Facts& facts) {
  std::string text = fmt::format("Cohort {}\n\nBuild\n  type     {}\n  compiler {}\n", facts.version,
                                 facts.build_type, facts.compiler);
  for (const Component& component : facts.components) {
    text += fmt::format("  {:<8} {}\n", component.name,
                        component.enabled ? "on, version " + component.version : "off");
  }
  text += fmt::format("\nMPI library\n  {}\n  ABI of this build: {}\n\nDevices of this process\n",
                      facts.mpi_library, facts.mpi_abi.empty() ? "unknown" : facts.mpi_abi);
  for (const DeviceFacts& device : facts.devices) text += describe(device);
  text += describe(facts.gpus) + "\nLibrary for collectives of GPUs\n" + describe(facts.nccl);
  text += "\nMemory of this process\n" + describe(facts.memory) + "\nSettings\n";
  for (const Setting& setting : facts.settings) text += describe(setting);
  return text;
}

// As JSON.

namespace {

Json to_json_value(const Setting& setting) {
  Json value{{"name", setting.spec.name},
             {"value", setting.value},
             {"origin", setting.from_environment ? "environment" : "default"},
             {"default", setting.spec.default_value},
             {"type", to_string(setting.spec.type)},
             {"text", setting.spec.text}};
  if (setting.spec.type == SettingType::kChoice) value["choices"] = setting.spec.choices;
  return value;
}

Json null_if_empty(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json to_json_value(const AllGpus& gpus) {
  Json list = Json::array();
  for (const GpuFacts& gpu : gpus.list) {
    list.push_back({{"name", gpu.name},
                    {"model", gpu.model},
                    {"bus_id", gpu.bus_id},
                    {"compute_capability", gpu.compute_capability},
                    {"memory_bytes", gpu.memory_bytes},
                    {"peers", gpu.peers},
                    {"memory_pools", gpu.has_memory_pools}});
  }
  return {{"list", list}, {"why_none", null_if_empty(gpus.why_none)}};
}

Json to_json_value(const NcclFacts& nccl) {
  return {{"path", null_if_empty(nccl.path)},
          {"version", null_if_empty(nccl.version)},
          {"why_none", null_if_empty(nccl.why_none)}};
}

}  // namespace

std::string to_json(const TuningFacts& facts) {
  Json figures = Json::array();
  for (const TuningFigure& figure : facts.figures) {
    figures.push_back({{"name", figure.name},
                       {"value", figure.value},
                       {"source", to_string(figure.source)},
                       {"text", figure.text}});
  }
  return Json{
      {"workers", facts.workers}, {"nodes", facts.nodes}, {"algorithm", facts.forced}, {"figures", figures}}
      .dump(2);
}

std::string to_json(const Facts& facts) {
  Json build{{"type", facts.build_type}, {"compiler", facts.compiler}};
  for (const Component& component : facts.components) {
    build[component.name] = {{"enabled", component.enabled},
                             {"version", component.enabled ? Json(component.version) : Json(nullptr)}};
  }
  Json devices = Json::array();
  for (const DeviceFacts& device : facts.devices) {
    devices.push_back({{"name", device.name}, {"cores", device.cores}, {"numa_nodes", device.numa_nodes}});
  }
  const Json heap = facts.memory.node_heap_bytes ? Json(*facts.memory.node_heap_bytes) : Json(nullptr);
  Json settings = Json::array();
  for (const Setting& setting : facts.settings) settings.push_back(to_json_value(setting));
  return Json{{"version", facts.version},
              {"build", build},
              {"mpi", {{"library", facts.mpi_library}, {"abi", null_if_empty(facts.mpi_abi)}}},
              {"devices", devices},
              {"gpus", to_json_value(facts.gpus)},
              {"nccl", to_json_value(facts.nccl)},
              {"memory", {{"node_heap_bytes", heap}, {"huge_pages", facts.memory.huge_pages}}},
              {"settings", settings}}
      .dump(2);
}

}  // namespace cohort::info
