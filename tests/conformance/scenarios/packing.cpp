// Which tensors of a list share a collective: `pack/<bytes of each>_limit<bytes per pack>`.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/collective/packing.h>

#include "common.h"

namespace cohort::conformance {
namespace {

struct Case {
  std::vector<std::int64_t> bytes;
  std::size_t limit;
};

std::vector<Case> cases() {
  return {
      {{128, 32, 800, 4}, 200},
      {{128, 32, 800, 4}, 0},
      {{128, 32, 800, 4}, 160},
      {{100, 100, 100}, 100},
      {{100, 100, 100}, 99},
      {{400}, 10},
      {{}, 10},
  };
}

/// The bytes of the tensors in each pack. The recorded function goes through its list from the
/// front; make_packs starts at the end, as a backward pass does, and so gets the list reversed.
Json packed(const Case& one) {
  std::vector<TensorSpec> specs;
  specs.reserve(one.bytes.size());
  for (const std::int64_t bytes : one.bytes) specs.push_back({{bytes}, DType::kUInt8});
  std::ranges::reverse(specs);
  Json packs = Json::array();
  for (const Pack& pack : make_packs(specs, one.limit)) {
    packs.push_back(Json::array());
    for (const std::size_t tensor : pack) packs.back().push_back(specs[tensor].bytes());
  }
  return packs;
}

}  // namespace

std::vector<Scenario> packing_scenarios() {
  std::vector<Scenario> scenarios;
  for (const Case& one : cases()) {
    const std::string list = one.bytes.empty() ? "none" : fmt::format("{}", fmt::join(one.bytes, "_"));
    scenarios.push_back(
        {fmt::format("pack/{}_limit{}", list, one.limit), [one](const Layout&) { return packed(one); }});
  }
  return scenarios;
}

}  // namespace cohort::conformance
