#include "commands.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kTrainerAbout =
    R"(trainer: what a Trainer adds to a step of the same training loop by hand, without metrics and with one.
In one process.

  cohort-bench trainer [options]
)";

OptionsDescription trainer_options() {
  OptionsDescription all = make_options("Options of trainer");
  add_loops(all, "pairs of loops per figure, of which the median counts; default 15");
  return all;
}

CommandOptions parse_trainer(const GivenOptions& given) {
  return TrainerBenchOptions{.loops = given.loops(15)};
}

}  // namespace

Command trainer_command() {
  return {.name = "trainer",
          .group = "Training",
          .text = "fit, next to a loop by hand",
          .about = kTrainerAbout,
          .options = trainer_options,
          .parse = parse_trainer};
}

}  // namespace cohort::bench
