#include "environment.h"

#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/config.h>
#include <cohort/base/version.h>

#include "device/machine.h"

namespace cohort::bench {
namespace {

std::string kernel() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";  // some architectures only give numbers here
}

std::string facts_of_this_worker() {
  std::vector<int> cores;
  for (const Core& core : allowed_cores()) cores.push_back(core.os_index);
  return nlohmann::json{{"cpu_model", cpu_model()}, {"kernel", kernel()}, {"cores", cores}}.dump();
}

std::vector<NodeFacts> gather_nodes(Bootstrap& bootstrap) {
  const std::vector<std::string> facts = bootstrap.exchange(facts_of_this_worker());
  std::vector<NodeFacts> nodes;
  for (const WorkerInfo& worker : bootstrap.workers()) {
    const auto index = static_cast<std::size_t>(worker.node);
    if (nodes.size() <= index) nodes.resize(index + 1);
    const auto fact = nlohmann::json::parse(facts[static_cast<std::size_t>(worker.rank)]);
    nodes[index].host = worker.host;
    nodes[index].cpu_model = fact.at("cpu_model").get<std::string>();
    nodes[index].kernel = fact.at("kernel").get<std::string>();
    nodes[index].cores_of_workers.push_back(fact.at("cores").get<std::vector<int>>());
  }
  return nodes;
}

}  // namespace

int NodeFacts::cores() const {
  std::set<int> any;
  for (const std::vector<int>& cores : cores_of_workers) any.insert(cores.begin(), cores.end());
  return static_cast<int>(any.size());
}

int Environment::members() const {
  int sum = 0;
  for (const NodeFacts& node : nodes) sum += members_of(node);
  return sum;
}

int Environment::cores() const {
  int sum = 0;
  for (const NodeFacts& node : nodes) sum += node.cores();
  return sum;
}

bool Environment::oversubscribed() const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const NodeFacts& node) { return members_of(node) > node.cores(); });
}

Environment capture_environment(Bootstrap& bootstrap, const std::string& mpi_library,
                                const std::vector<std::string>& command_line) {
  Environment environment;
  environment.version = COHORT_VERSION;
  environment.build = COHORT_BENCH_BUILD;
  environment.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  const std::string home = home_folder();
  environment.command_line = describe_command(command_line, home);
  environment.mpi_library = mpi_library;
  environment.nodes = gather_nodes(bootstrap);
  for (const Setting& setting : config().settings()) {
    environment.settings.push_back(
        {std::string(setting.spec.name), without_home(setting.value, home), setting.from_environment});
  }
  return environment;
}

std::string home_folder() {
  const char* const home = std::getenv("HOME");
  return home == nullptr ? "" : home;
}

std::string without_home(std::string text, std::string_view home) {
  while (home.ends_with('/')) home.remove_suffix(1);
  if (home.empty()) return text;
  const std::size_t value = text.starts_with("--") ? text.find('=') + 1 : 0;
  const std::string_view path = std::string_view(text).substr(value);
  const bool inside = path == home || (path.starts_with(home) && path[home.size()] == '/');
  if (inside) text.replace(value, home.size(), "~");
  return text;
}

std::string describe_command(std::span<const std::string> command_line, std::string_view home) {
  std::string text = std::filesystem::path(command_line.front()).filename().string();
  for (const std::string& argument : command_line.subspan(1)) text += " " + without_home(argument, home);
  return text;
}

std::string describe_binding(const Environment& environment) {
  if (environment.oversubscribed()) return "oversubscribed: more members than cores";
  if (environment.threads) return "threads of one process, each bound to a core";
  bool shared = false;
  for (const NodeFacts& node : environment.nodes) {
    std::size_t of_all_workers = 0;
    for (const std::vector<int>& cores : node.cores_of_workers) of_all_workers += cores.size();
    shared = shared || of_all_workers > static_cast<std::size_t>(node.cores());
  }
  return shared ? "not bound: workers of a node share its cores" : "each worker has cores of its own";
}

std::string oversubscription_warning(const Environment& environment) {
  for (const NodeFacts& node : environment.nodes) {
    const int members = environment.members_of(node);
    if (members <= node.cores()) continue;
    return fmt::format(
        "warning: {} members on {} {} of host {}: these timings are of the scheduler, not of a library",
        members, node.cores(), node.cores() == 1 ? "core" : "cores", node.host);
  }
  return {};
}

}  // namespace cohort::bench
