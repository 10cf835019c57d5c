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
              {"mpi", {{"library", facts.mpi_library}}},
              {"devices", devices},
              {"memory", {{"node_heap_bytes", heap}, {"huge_pages", facts.memory.huge_pages}}},
              {"settings", settings}}
      .dump(2);
}

}  // namespace cohort::info
