#include "commands.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kCheckpointAbout =
    R"(checkpoint: how fast checkpoints are saved, restored and verified, next to cp and fsync() of the same
bytes, and what saving in the background takes from a training's steps. In one process.

  cohort-bench checkpoint [options]
)";

OptionsDescription checkpoint_options() {
  OptionsDescription all = make_options("Options of checkpoint");
  add_option(all, "mib", "N", "size of the large variable, in MiB; default 1024");
  add_option(all, "small-values", "N", "how many small variables, each of 4 KiB; default 10000");
  add_option(all, "folder", "PATH", "where checkpoints are written; default: that of temporary files");
  add_loops(all, "loops per figure, of which the median counts; default 5");
  return all;
}

CommandOptions parse_checkpoint(const GivenOptions& given) {
  constexpr int kMostMib = 1 << 20;
  constexpr int kMostSmallValues = 1 << 20;
  CheckpointBenchOptions checkpoint;
  checkpoint.mib = given.count("mib", 1024, kMostMib);
  checkpoint.small_values = given.count("small-values", 10000, kMostSmallValues);
  checkpoint.loops = given.loops();
  checkpoint.folder = given.text("folder");
  return checkpoint;
}

}  // namespace

Command checkpoint_command() {
  return {.name = "checkpoint",
          .group = "Checkpoints",
          .text = "saving, restoring and verifying, next to cp",
          .about = kCheckpointAbout,
          .options = checkpoint_options,
          .parse = parse_checkpoint};
}

}  // namespace cohort::bench
