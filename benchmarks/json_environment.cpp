#include "json_environment.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const NodeFacts& node) {
  return {{"host", node.host},           {"workers", node.workers()},
          {"cores", node.cores()},       {"cores_of_workers", node.cores_of_workers},
          {"cpu_model", node.cpu_model}, {"kernel", node.kernel}};
}

}  // namespace

Json to_json(const Environment& environment) {
  Json hosts = Json::array();
  Json nodes = Json::array();
  for (const NodeFacts& node : environment.nodes) {
    hosts.push_back(node.host);
    nodes.push_back(to_json(node));
  }
  Json settings = Json::object();
  for (const SettingFact& setting : environment.settings) {
    settings[setting.name] = {{"value", setting.value},
                              {"origin", setting.from_environment ? "environment" : "default"}};
  }
  const NodeFacts& first = environment.nodes.front();
  return {{"version", environment.version},
          {"build", environment.build},
          {"date", environment.date},
          {"command_line", environment.command_line},
          {"hosts", hosts},
          {"members", environment.members()},
          {"nodes", environment.nodes.size()},
          {"cpu_model", first.cpu_model},
          {"cores_available", environment.cores()},
          {"kernel", first.kernel},
          {"mpi_library", environment.mpi_library},
          {"gpu", environment.gpu.empty() ? Json(nullptr) : Json(environment.gpu)},
          {"clock", environment.clock},
          {"settings", settings},
          {"binding", describe_binding(environment)},
          {"oversubscribed", environment.oversubscribed()},
          {"per_node", nodes}};
}

}  // namespace cohort::bench
