// CommunicationOptions, shown as [bytes per pack, time-out, implementation].
#include <algorithm>
#include <cctype>

#include <cohort/collective/communication_options.h>

#include "common.h"

namespace cohort::conformance {
namespace {

/// The original's name of the enumerator.
Json show_implementation(CommunicationImplementation implementation) {
  std::string name(to_string(implementation));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

Json show_options(const CommunicationOptions& options) {
  return {options.bytes_per_pack, show(options.timeout_seconds), show_implementation(options.implementation)};
}

constexpr CommunicationOptions kAllSet{
    .timeout_seconds = 5, .bytes_per_pack = 10, .implementation = CommunicationImplementation::kNccl};

}  // namespace

std::vector<Scenario> options_scenarios() {
  return {
      {"options/defaults", [](const Layout&) { return show_options({}); }},
      {"options/impl_string",
       [](const Layout&) {
         return Json{show_implementation(parse_communication_implementation("RING")),
                     show_implementation(parse_communication_implementation("ring"))};
       }},
      {"options/impl_bad",
       [](const Layout&) { return show_implementation(parse_communication_implementation("x")); }},
      {"options/timeout_negative",
       [](const Layout&) {
         const CommunicationOptions options{.timeout_seconds = -1};
         options.validate();
         return show(options.timeout_seconds);
       },
       {{"", "a time-out is not negative", [](const Layout&) { return an_error(); }}}},
      {"options/merge_default", [](const Layout&) { return show_options(kAllSet.merge({})); }},
      {"options/merge_over",
       [](const Layout&) {
         return show_options(
             kAllSet.merge({.bytes_per_pack = 20, .implementation = CommunicationImplementation::kRing}));
       }},
  };
}

}  // namespace cohort::conformance
