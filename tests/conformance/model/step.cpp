#include "step.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cohort::model {
namespace {

template <std::size_t kSize, class Enum>
const char* name(const std::array<const char*, kSize>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

constexpr std::array kKinds{"default", "one_device", "mirrored", "central_storage"};
constexpr std::array kPlaces{"outside", "scope",  "foreign scope", "replica",
                             "merge",   "update", "replica update"};
constexpr std::array kActions{"make",
                              "assign",
                              "assign_add",
                              "assign_sub",
                              "assign number",
                              "scatter_add",
                              "scatter_sub",
                              "scatter_mul",
                              "scatter_div",
                              "scatter_min",
                              "scatter_max",
                              "scatter_update",
                              "read",
                              "moving_average",
                              "reduce",
                              "reduce_along",
                              "reduce_to",
                              "batch_reduce_to",
                              "gather",
                              "broadcast_to",
                              "all_reduce",
                              "all_reduce_in_place",
                              "all_gather",
                              "reduce_scatter",
                              "merge_call that reduces",
                              "merge_call that runs again",
                              "pass through",
                              "ask"};
constexpr std::array kOps{"sum", "mean", "max"};
constexpr std::array kSynchronizations{"auto", "none", "on_write", "on_read"};
constexpr std::array kAggregations{"none", "sum", "mean", "only_first_replica"};
constexpr std::array kSources{"PerReplica", "plain", "Mirrored", "variable", "structure"};
constexpr std::array kForms{"tensor", "double", "int", "list", "tuple", "map", "optional", "slices", "mixed"};

}  // namespace

std::string text(const Layout& layout) {
  return fmt::format("{} of {} workers x {} devices", name(kKinds, layout.kind), layout.workers,
                     layout.devices);
}

std::string text(const Step& step) {
  std::string result = fmt::format("{} in {}: variable {}, ", name(kActions, step.action),
                                   name(kPlaces, step.place), step.variable);
  if (step.action == Action::kMake) {
    result += fmt::format("{} {}, ", name(kSynchronizations, step.synchronization),
                          name(kAggregations, step.aggregation));
  }
  result += fmt::format("{} of {} {}, axes {}, parts {}, decay {}, {} destinations", name(kOps, step.op),
                        name(kSources, step.source), name(kForms, step.form), step.axes, step.parts,
                        step.decay, step.destinations);
  for (std::size_t replica = 0; replica < step.values.size(); ++replica)
    result += fmt::format("\n      {}: {}", replica, text(step.values[replica]));
  return result;
}

}  // namespace cohort::model
