#include <nlohmann/json.hpp>

#include "facts.h"

namespace cohort::info {
namespace {

using Json = nlohmann::ordered_json;

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
