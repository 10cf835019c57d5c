#include "variables.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace cohort::conformance {
namespace {

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::toupper(c); });
  return result;
}

}  // namespace

std::string name_of(VariableSynchronization synchronization) { return upper(to_string(synchronization)); }
std::string name_of(VariableAggregation aggregation) { return upper(to_string(aggregation)); }
std::string name_of(const VariableKind& kind) {
  return fmt::format("{}_{}", name_of(kind.synchronization), name_of(kind.aggregation));
}

const std::vector<VariableAggregation>& aggregations() {
  static const std::vector<VariableAggregation> all{VariableAggregation::kNone, VariableAggregation::kSum,
                                                    VariableAggregation::kMean,
                                                    VariableAggregation::kOnlyFirstReplica};
  return all;
}

const std::vector<VariableKind>& variable_kinds() {
  static const std::vector<VariableKind> all = [] {
    std::vector<VariableKind> kinds;
    for (const auto synchronization : {VariableSynchronization::kOnWrite, VariableSynchronization::kOnRead})
      for (const VariableAggregation aggregation : aggregations())
        kinds.push_back({synchronization, aggregation});
    return kinds;
  }();
  return all;
}

Variable make_variable(const Layout& layout, const VariableOptions& options) {
  const auto scope = layout.strategy().scope();
  return Variable(options);
}

Variable make_variable(const Layout& layout, const VariableKind& kind, const Tensor& initial) {
  return make_variable(
      layout,
      {.initial_value = initial, .synchronization = kind.synchronization, .aggregation = kind.aggregation});
}

Variable counted_variable(const Layout& layout, const VariableKind& kind) {
  Variable variable = make_variable(layout, kind, number(10));
  layout.run([&](int r) { return variable.assign(number(r + 1)); });
  return variable;
}

Json components(const Variable& variable) {
  Json list = Json::array();
  for (const Tensor& component : variable.components()) list.push_back(show(component));
  return list;
}

bool keeps_single_copies(const Layout& layout) {
  return layout.is_default() ||
         layout.strategy().extended().variable_placement() == VariablePlacement::kSingleCopy;
}

}  // namespace cohort::conformance
