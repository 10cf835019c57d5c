#include <ostream>

#include <fmt/format.h>

#include "command_line.h"
#include "report.h"
#include "training/training.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kTrainerAbout =
    R"(Usage: cohort-bench trainer [OPTION ...]

trainer: what a Trainer adds to a step of the same training loop by hand, without metrics and with one.
In one process.
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

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const TrainerResult& result) {
  using Row = TrainerRow;
  const RowsReport<Row> report{
      .name = "trainer",
      .facts = {{"loops", result.loops}},
      .introduction = fmt::format(
          "# what a Trainer adds to a step of the same loop by hand, median of {} pairs\n\n", result.loops),
      .fields = {{"case", &Row::name},
                 {"by_hand_us", &Row::by_hand_us, "{}", FieldIn::kJson},
                 {"overhead_us", &Row::overhead_us, "{:.3f}"}},
      .columns = {
          {"case", -32, &Row::name},
          {"by hand us", 12, &Row::by_hand_us},
          {"overhead us", 14, [](const Row& row) { return fmt::format("{:.3f}", row.overhead_us); }}}};
  write_rows(format, stream, environment, report, result.rows);
}

namespace {

constexpr std::string_view kSummaryAbout =
    R"(Usage: cohort-bench summary [OPTION ...]

summary: what logs cost a training: a scalar and a histogram of a SummaryWriter, at the caller, also while the
disk is slow, and until they are in the file. In one process.
)";

OptionsDescription summary_options() {
  OptionsDescription all = make_options("Options of summary");
  add_option(all, "folder", "FOLDER",
             "where files are written, and removed; default: that of temporary files");
  add_loops(all, "loops per figure, of which the median counts; default 15");
  return all;
}

CommandOptions parse_summary(const GivenOptions& given) {
  return SummaryBenchOptions{.loops = given.loops(15), .folder = given.text("folder")};
}

}  // namespace

Command summary_command() {
  return {.name = "summary",
          .group = "Training",
          .text = "logs: scalars and histograms",
          .about = kSummaryAbout,
          .options = summary_options,
          .parse = parse_summary};
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const SummaryResult& result) {
  using Row = SummaryRow;
  const RowsReport<Row> report{
      .name = "summary",
      .facts = {{"loops", result.loops}},
      .introduction =
          fmt::format("# us of a value that a SummaryWriter records, median of {} loops\n\n", result.loops),
      .fields = {{"case", &Row::name}, {"us", &Row::us, "{:.4g}"}},
      .columns = {{"case", -44, &Row::name}, {"us", 9, &Row::us}}};
  write_rows(format, stream, environment, report, result.rows);
}

namespace {

constexpr std::string_view kShardedOptimizerAbout =
    R"(Usage: mpirun -n N cohort-bench sharded-optimizer [OPTION ...]

sharded-optimizer: a step of an optimizer whose slots are spread over the ranks (ShardedOptimizer), in turns
with one whose slots every rank has; and both with update options: weight decay, clipping by value, by the norm of
each variable and by the global norm, averages, and float32 masters of bfloat16 variables.
)";

OptionsDescription sharded_optimizer_options() {
  OptionsDescription all = make_options("Options of sharded-optimizer");
  add_option(
      all, "model", "FILE",
      "CSV with the columns name,elements: the model's variables; default benchmarks/models/resnet50.csv");
  add_loops(all, "steps of each kind, of which the median counts; default 11");
  return all;
}

CommandOptions parse_sharded_optimizer(const GivenOptions& given) {
  return ShardedOptimizerOptions{.model = given.text("model", "benchmarks/models/resnet50.csv"),
                                 .loops = given.loops(11)};
}

}  // namespace

Command sharded_optimizer_command() {
  return {.name = "sharded-optimizer",
          .group = "Training",
          .text = "slots spread over the ranks, next to slots on each",
          .about = kShardedOptimizerAbout,
          .ranks = CommandRanks::kAny,
          .options = sharded_optimizer_options,
          .parse = parse_sharded_optimizer};
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const ShardedOptimizerResult& result) {
  using Row = ShardedOptimizerRow;
  const auto whole = [](double bytes) { return fmt::format("{:.0f}", bytes); };
  const RowsReport<Row> report{
      .name = "sharded_optimizer",
      .facts = {{"model", result.model},
                {"elements", result.elements},
                {"ranks", result.ranks},
                {"loops", result.loops}},
      .introduction = fmt::format(
          "# sharded-optimizer: {}, {} elements, {} ranks; a step, gradients summed in place, median of {}\n"
          "# bytes: of slots on a rank; ratio: sharded over replicated\n\n",
          result.model, result.elements, result.ranks, result.loops),
      .fields = {{"optimizer", &Row::optimizer},
                 {"ranks", [&](const Row& /*row*/) { return result.ranks; }, "{}", FieldIn::kCsv},
                 {"replicated_ms", &Row::replicated_ms, "{:.6g}"},
                 {"sharded_ms", &Row::sharded_ms, "{:.6g}"},
                 {"ratio", &Row::ratio, "{:.4g}"},
                 {"replicated_bytes", &Row::replicated_bytes, "{:.0f}"},
                 {"sharded_bytes", &Row::sharded_bytes, "{:.0f}"}},
      .columns = {{"optimizer", -18, &Row::optimizer},
                  {"replicated ms", 13, &Row::replicated_ms},
                  {"sharded ms", 11, &Row::sharded_ms},
                  {"ratio", 6, &Row::ratio},
                  {"replicated bytes", 17, [&](const Row& row) { return whole(row.replicated_bytes); }},
                  {"sharded bytes", 14, [&](const Row& row) { return whole(row.sharded_bytes); }}}};
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
