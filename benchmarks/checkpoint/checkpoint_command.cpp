#include <optional>
#include <ostream>

#include <fmt/format.h>

#include "checkpoint/checkpoint.h"
#include "command_line.h"
#include "report.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kCheckpointAbout =
    R"(Usage: cohort-bench checkpoint [OPTION ...]

checkpoint: how fast checkpoints are saved, restored and verified, next to cp and fsync() of the same
bytes, and what saving in the background takes from a training's steps. In one process.
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

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const CheckpointResult& result) {
  using Row = CheckpointRow;
  const auto loss_percent = [](const Row& row) -> std::optional<double> {
    if (!row.step_loss) return std::nullopt;
    return 100 * *row.step_loss;
  };
  const RowsReport<Row> report{
      .name = "checkpoint",
      .facts = {{"loops", result.loops}},
      .introduction = fmt::format(
          "# checkpoint: median of {} loops; copy: cp and fsync() of the same bytes, in turns\n"
          "# save_async: the call alone; loss: of the time of steps on two cores, until it is on disk\n"
          "# original: TensorFlow 2.21.0 on 2 cores\n\n",
          result.loops),
      .fields = {{"mode", &Row::mode},
                 {"bytes", &Row::bytes},
                 {"gib_per_s", &Row::gib_per_s, "{:.6g}"},
                 {"ratio_to_copy", &Row::ratio_to_copy, "{:.6g}"},
                 {"values", &Row::values},
                 {"seconds", &Row::seconds, "{:.6g}"},
                 {"copy_seconds", &Row::copy_seconds, "{:.6g}"},
                 {"step_loss", &Row::step_loss, "{:.6g}"},
                 {"original_seconds", &Row::original_seconds, "{:.6g}"}},
      .columns = {{"mode", -10, &Row::mode},
                  {"bytes", 11, &Row::bytes},
                  {"values", 7, &Row::values},
                  {"seconds", 9, &Row::seconds},
                  {"GiB/s", 8, &Row::gib_per_s},
                  {"copy s", 9, &Row::copy_seconds},
                  {"ratio", 6, &Row::ratio_to_copy},
                  {"loss %", 8, loss_percent},
                  {"original s", 11, &Row::original_seconds}}};
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
