#include <fmt/format.h>

#include "facts.h"

namespace cohort::info {
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

}  // namespace cohort::info
