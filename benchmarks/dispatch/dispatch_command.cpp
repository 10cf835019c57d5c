#include "commands.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kDispatchAbout =
    R"(dispatch: what the strategy layer adds to what replicas do, on one device and on two: empty functions,
merges, reads of variables, reductions of a number, a step over 161 variables. In one process.

  cohort-bench dispatch [options]
)";

OptionsDescription dispatch_options() {
  OptionsDescription all = make_options("Options of dispatch");
  add_loops(all, "loops per figure, of which the median counts; default 5");
  return all;
}

CommandOptions parse_dispatch(const GivenOptions& given) { return DispatchOptions{.loops = given.loops()}; }

}  // namespace

Command dispatch_command() {
  return {.name = "dispatch",
          .group = "The strategy layer",
          .text = "runs, merges and reads, next to the original",
          .about = kDispatchAbout,
          .options = dispatch_options,
          .parse = parse_dispatch};
}

}  // namespace cohort::bench
