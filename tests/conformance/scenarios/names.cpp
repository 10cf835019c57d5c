// The enumerations of options, and how values print.
#include <algorithm>
#include <cctype>
#include <sstream>

#include <cohort/collective/communication_options.h>
#include <cohort/input/input_options.h>

#include "common.h"

namespace cohort::conformance {
namespace {

template <class Enumeration>
std::string upper_case_name(Enumeration value) {
  std::string name(to_string(value));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

/// [name, number] of each.
template <class Enumeration>
Json numbered(std::initializer_list<Enumeration> values) {
  Json list = Json::array();
  for (const Enumeration value : values) list.push_back({upper_case_name(value), static_cast<int>(value)});
  return list;
}

/// [name, value] of each, where values are names.
template <class Enumeration>
Json named(std::initializer_list<Enumeration> values) {
  Json list = Json::array();
  for (const Enumeration value : values) list.push_back({upper_case_name(value), upper_case_name(value)});
  return list;
}

}  // namespace

std::vector<Scenario> name_scenarios() {
  return {
      {"enums/sync",
       [](const Layout& /*l*/) {
         return numbered({VariableSynchronization::kAuto, VariableSynchronization::kNone,
                          VariableSynchronization::kOnWrite, VariableSynchronization::kOnRead});
       }},
      {"enums/agg",
       [](const Layout& /*l*/) {
         return numbered({VariableAggregation::kNone, VariableAggregation::kSum, VariableAggregation::kMean,
                          VariableAggregation::kOnlyFirstReplica});
       }},
      {"enums/comm",
       [](const Layout& /*l*/) {
         return named({CommunicationImplementation::kAuto, CommunicationImplementation::kRing,
                       CommunicationImplementation::kNccl});
       }},
      {"enums/repl_mode",
       [](const Layout& /*l*/) {
         return named({InputReplicationMode::kPerWorker, InputReplicationMode::kPerReplica});
       }},
      {"valuecontext/repr",
       [](const Layout& /*l*/) {
         std::ostringstream text;
         text << ValueContext{.replica_id_in_sync_group = 1, .num_replicas_in_sync = 4};
         return Json(text.str());
       },
       {{"", "names without a module",
         [](const Layout& /*l*/) { return Json("ValueContext(replica id 1, total replicas in sync: 4)"); }}}},
  };
}

}  // namespace cohort::conformance
