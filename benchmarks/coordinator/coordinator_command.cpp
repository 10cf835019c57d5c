#include "commands.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kCoordinatorAbout =
    R"(coordinator: how many functions a second workers run for a coordinator, and how long one takes there and
back: empty ones, and ones that change variables of parameter servers. Starts its tasks itself, or takes
those of cohort-run.

  cohort-bench coordinator [options]
  cohort-run --roles chief=1,worker=W,ps=P cohort-bench coordinator [options]
)";

OptionsDescription coordinator_options() {
  OptionsDescription all = make_options("Options of coordinator");
  add_loops(all, "loops per figure, of which the median counts; default 5");
  return all;
}

CommandOptions parse_coordinator(const GivenOptions& given) {
  return CoordinatorOptions{.loops = given.loops()};
}

}  // namespace

Command coordinator_command() {
  return {.name = "coordinator",
          .group = "Parameter servers",
          .text = "functions that workers run, next to the original",
          .about = kCoordinatorAbout,
          .options = coordinator_options,
          .parse = parse_coordinator};
}

}  // namespace cohort::bench
