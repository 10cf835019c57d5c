#include "commands.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kAbout =
    R"(dispatch: what the strategy layer adds to what replicas do, on one device and on two: empty functions,
merges, reads of variables, reductions of a number, a step over 161 variables. In one process.

  cohort-bench dispatch [options]
)";

OptionsDescription options() {
  OptionsDescription all = make_options("Options of dispatch");
  add_loops(all, "loops per figure, of which the median counts; default 5");
  return all;
}

CommandOptions parse(const GivenOptions& given) { return DispatchOptions{.loops = given.loops()}; }

}  // namespace

Command dispatch_command() {
  return {.name = "dispatch",
          .group = "The strategy layer",
          .text = "runs, merges and reads, next to the original",
          .about = kAbout,
          .options = options,
          .parse = parse};
}

}  // namespace cohort::bench
