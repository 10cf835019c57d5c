#include "commands.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kAbout =
    R"(trainer: what a Trainer adds to a step of the same training loop by hand, without metrics and with one.
In one process.

  cohort-bench trainer [options]
)";

OptionsDescription options() {
  OptionsDescription all = make_options("Options of trainer");
  add_loops(all, "pairs of loops per figure, of which the median counts; default 15");
  return all;
}

CommandOptions parse(const GivenOptions& given) { return TrainerBenchOptions{.loops = given.loops(15)}; }

}  // namespace

Command trainer_command() {
  return {.name = "trainer",
          .group = "Training",
          .text = "fit, next to a loop by hand",
          .about = kAbout,
          .options = options,
          .parse = parse};
}

}  // namespace cohort::bench
