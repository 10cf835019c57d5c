#include "facts.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/version.h>
#include <cohort/device/device.h>

#include "collective/choice/selection.h"
#include "device/machine.h"
#include "device/node_heap.h"
#include "device/topology.h"

namespace cohort::info {
namespace {

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

/// `version` is empty in a build without it.
Component component(const char* name, const std::string& version) {
  return {.name = name, .enabled = !version.empty(), .version = version};
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
      .components = {component("cuda", COHORT_INFO_CUDA), component("nccl", COHORT_INFO_NCCL)},
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

}  // namespace cohort::info
