#include <ifaddrs.h>
#include <net/if.h>

#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cohort/base/environment.h>

#include "base/json.h"
#include "device/machine.h"
#include "facts.h"

namespace cohort::info {
namespace {

using Json = nlohmann::ordered_json;

/// The network interfaces that are up, without loopback.
std::set<std::string> networks() {
  std::set<std::string> names;
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return names;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, &::freeifaddrs);
  for (const ifaddrs* each = list.get(); each != nullptr; each = each->ifa_next)
    if ((each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0)
      names.insert(each->ifa_name);
  return names;
}

BindingFacts own_binding(const WorkerInfo& self) {
  std::vector<int> cores;
  std::set<int> numa_nodes;
  for (const Core& core : allowed_cores()) {
    cores.push_back(core.os_index);
    numa_nodes.insert(core.numa_node);
  }
  const Environment variables = process_environment();
  const auto gpus = variables.find("CUDA_VISIBLE_DEVICES");
  return {.rank = self.rank,
          .node = self.node,
          .host = self.host,
          .cores = fmt::format("{}", fmt::join(cores, " ")),
          .numa_nodes = fmt::format("{}", fmt::join(numa_nodes, " ")),
          .gpus = gpus == variables.end() ? "" : gpus->second,
          .networks = fmt::format("{}", fmt::join(networks(), " "))};
}

Json to_json_value(const BindingFacts& binding) {
  return {{"rank", binding.rank},
          {"node", binding.node},
          {"host", binding.host},
          {"cores", binding.cores},
          {"numa_nodes", binding.numa_nodes},
          {"gpus", binding.gpus},
          {"networks", binding.networks}};
}

}  // namespace

std::vector<BindingFacts> gather_bindings(int argc, char** argv) {
  mpi::Session session(argc, argv);
  std::vector<BindingFacts> bindings;
  for (const std::string& blob : session.exchange(to_json_value(own_binding(session.self())).dump())) {
    bindings.push_back(
        read_json<Json>(blob, "a worker says of its place what cannot be read", [](const Json& each) {
          return BindingFacts{each.at("rank"),       each.at("node"), each.at("host"),    each.at("cores"),
                              each.at("numa_nodes"), each.at("gpus"), each.at("networks")};
        }));
  }
  return bindings;
}

std::string to_text(const std::vector<BindingFacts>& bindings) {
  const auto or_none = [](const std::string& list) { return list.empty() ? std::string("-") : list; };
  std::string text = fmt::format("{:>5} {:>5}  {:<16} {:<16} {:<8} {:<10} {}\n", "rank", "node", "host",
                                 "cores", "NUMA", "GPUs", "networks");
  for (const BindingFacts& each : bindings) {
    text += fmt::format("{:>5} {:>5}  {:<16} {:<16} {:<8} {:<10} {}\n", each.rank, each.node, each.host,
                        each.cores, each.numa_nodes, or_none(each.gpus), or_none(each.networks));
  }
  return text;
}

std::string to_json(const std::vector<BindingFacts>& bindings) {
  Json workers = Json::array();
  for (const BindingFacts& each : bindings) workers.push_back(to_json_value(each));
  return Json{{"workers", workers}}.dump(2);
}

}  // namespace cohort::info
