#include "report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace cohort::bench {
namespace {

Json to_json(const NodeFacts& node) {
  return {{"host", node.host},           {"workers", node.workers()},
          {"cores", node.cores()},       {"cores_of_workers", node.cores_of_workers},
          {"cpu_model", node.cpu_model}, {"kernel", node.kernel}};
}

std::string plural(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string csv_text(const Json& value, const char* format) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format(fmt::runtime(format), value.get<double>()) : value.dump();
}

std::string table_text(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? three_digits(value.get<double>()) : value.dump();
}

}  // namespace

std::string three_digits(double value) {
  if (value == 0) return "0";
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(2 - magnitude, 0, 5));
}

std::string csv_line(const std::vector<Json>& values, const std::vector<const char*>& formats) {
  std::string line;
  for (std::size_t i = 0; i < values.size(); ++i)
    line += (i == 0 ? "" : ",") + csv_text(values[i], formats[i]);
  return line + "\n";
}

std::string table_line(const std::vector<Json>& values, const std::vector<int>& widths) {
  std::string line;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string text = table_text(values[i]);
    if (i > 0) line += " ";
    line += widths[i] < 0 ? fmt::format("{:<{}}", text, -widths[i]) : fmt::format("{:>{}}", text, widths[i]);
  }
  return line + "\n";
}

std::string summarize(const Environment& environment) {
  const NodeFacts& first = environment.nodes.front();
  std::string hosts = first.host;
  if (environment.nodes.size() > 1) hosts += fmt::format(" to {}", environment.nodes.back().host);

  std::string settings;
  for (const SettingFact& setting : environment.settings) {
    if (setting.from_environment) settings += fmt::format(" {}={}", setting.name, setting.value);
  }
  const std::string mpi = environment.mpi_library.substr(0, environment.mpi_library.find(','));
  const auto count = [](int number) { return static_cast<std::size_t>(number); };

  std::string text = fmt::format("# Cohort {} ({}), {}, {}\n", environment.version, environment.build, mpi,
                                 environment.date);
  text += fmt::format("# {} on {} ({}), {}: {}\n", plural(count(environment.members()), "member"),
                      plural(environment.nodes.size(), "node"), hosts,
                      plural(count(environment.cores()), "core"), describe_binding(environment));
  text += fmt::format("# {}, {}\n", first.cpu_model, first.kernel);
  if (!environment.gpu.empty()) text += fmt::format("# GPU of member 0: {}\n", environment.gpu);
  text += fmt::format("# clock: {}\n", environment.clock);
  text += fmt::format("# settings:{}\n", settings.empty() ? " all default" : settings);
  text += fmt::format("# {}\n", environment.command_line);
  return text;
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
          {"gpu", environment.gpu.empty() ? Json(nullptr) : Json(environment.gpu)},
          {"clock", environment.clock},
          {"settings", settings},
          {"binding", describe_binding(environment)},
          {"oversubscribed", environment.oversubscribed()},
          {"per_node", nodes}};
}

}  // namespace cohort::bench
