#include <ostream>

#include <nlohmann/json.hpp>

#include "report.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const NodeFacts& node) {
  return {{"host", node.host},           {"workers", node.workers()},
          {"cores", node.cores()},       {"cores_of_workers", node.cores_of_workers},
          {"cpu_model", node.cpu_model}, {"kernel", node.kernel}};
}

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
          {"settings", settings},
          {"binding", describe_binding(environment)},
          {"oversubscribed", environment.oversubscribed()},
          {"per_node", nodes}};
}

Json to_json(const Result& row) {
  return {{"collective", row.collective},
          {"library", row.library},
          {"algorithm", row.algorithm},
          {"dtype", row.dtype},
          {"op", row.op},
          {"members", row.members},
          {"bytes", row.bytes},
          {"elements", row.elements},
          {"in_place", row.in_place},
          {"inputs", row.inputs},
          {"iterations", row.iterations},
          {"median_us", row.median_us},
          {"min_us", row.min_us},
          {"p99_us", row.p99_us},
          {"iteration_us", row.iteration_us},
          {"algbw_gbs", row.algbw_gbs},
          {"busbw_gbs", row.busbw_gbs},
          {"ratio_to_peer", or_null(row.ratio_to_peer)},
          {"wrong", or_null(row.wrong)}};
}

/// One object with `environment` and `results`, whose fields are named as the columns of the CSV.
class JsonReport final : public Report {
 public:
  explicit JsonReport(std::ostream& stream) : stream_(stream) {}

  void begin(const Environment& environment, const std::string& /*subject*/) override {
    environment_ = to_json(environment);
  }
  void add(const Result& result) override { results_.push_back(to_json(result)); }
  void note(const std::string& text) override { notes_.push_back(text); }
  void end() override {
    stream_ << Json{{"environment", environment_}, {"results", results_}, {"notes", notes_}}.dump(2)
            << std::endl;
  }

 private:
  std::ostream& stream_;
  Json environment_;
  Json results_ = Json::array();
  Json notes_ = Json::array();
};

}  // namespace

std::unique_ptr<Report> make_json_report(std::ostream& stream) {
  return std::make_unique<JsonReport>(stream);
}

}  // namespace cohort::bench
