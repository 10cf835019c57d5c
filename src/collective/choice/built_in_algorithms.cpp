#include "built_in_algorithms.h"

#include <algorithm>
#include <vector>

#include "collective/network/lane_algorithm.h"

namespace cohort {
namespace {

std::vector<BuiltInAlgorithm> collect() {
  std::vector<BuiltInAlgorithm> algorithms;
  algorithms.reserve(node::kProtocols.size() + network::lane_algorithms().size() + 1);
  for (const node::Protocol protocol : node::kProtocols)
    algorithms.push_back({.name = to_string(protocol), .protocol = protocol});
  for (const network::LaneAlgorithm* const algorithm : network::lane_algorithms()) {
    if (algorithm->in_rank_order) continue;
    algorithms.push_back(
        {.name = algorithm->setting(), .kind = algorithm->kind, .lane_algorithm = algorithm});
  }
  algorithms.push_back({.name = kTransportAlgorithm, .of_transport = true});
  return algorithms;
}

}  // namespace

std::span<const BuiltInAlgorithm> built_in_algorithms() {
  static const auto* const all =
      new const std::vector<BuiltInAlgorithm>(collect());  // communicators point to them
  return *all;
}

const BuiltInAlgorithm* find_built_in(std::string_view name) {
  const std::span<const BuiltInAlgorithm> all = built_in_algorithms();
  const auto found = std::ranges::find(all, name, &BuiltInAlgorithm::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace cohort
