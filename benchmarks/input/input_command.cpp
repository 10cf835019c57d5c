#include <optional>
#include <ostream>

#include <fmt/format.h>

#include "command_line.h"
#include "input/input.h"
#include "option_values.h"
#include "report.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kInputAbout =
    R"(Usage: cohort-bench input [OPTION ...]

input: how many elements and batches numbers in memory and files of several formats deliver to one and
two replicas, and how long a program that computes waits for them. In one process.
)";

OptionsDescription input_options() {
  OptionsDescription all = make_options("Options of input");
  add_option(all, "batch", "N", "elements of a global batch; default 64");
  add_option(all, "record-bytes", "N", "bytes of an element of the files, a multiple of 8; default 4096");
  add_option(all, "file-mib", "N", "size of each file in MiB; default 64");
  add_option(
      all, "compute-us", "US",
      "what each replica computes in a step; default: 2.5 times what making its batch takes one thread");
  add_option(
      all, "read-ahead", "N",
      "batches per replica that a thread makes ahead of the program; 0: none, without a thread; default 1");
  add_option(all, "folder", "PATH", "where the files are written; default: that of temporary files");
  add_loops(all, "passes per figure, of which the median counts; default 5");
  return all;
}

CommandOptions parse_input(const GivenOptions& given) {
  constexpr int kMostBatch = 1 << 20;
  constexpr int kMostRecordBytes = 1 << 24;
  constexpr int kMostFileMib = 1 << 20;
  constexpr int kMostComputeUs = 10'000'000;
  constexpr int kCsvFieldBytes = 8;
  constexpr int kMostReadAhead = 1000;
  InputBenchOptions input;
  input.batch = given.count("batch", 64, kMostBatch);
  input.record_bytes = given.count("record-bytes", 4096, kMostRecordBytes);
  if (input.record_bytes % kCsvFieldBytes != 0)
    throw UsageError("--record-bytes {}: write a multiple of {}", input.record_bytes, kCsvFieldBytes);
  input.file_mib = given.count("file-mib", 64, kMostFileMib);
  if (given.has("compute-us"))
    input.compute_us = parse_count("--compute-us", given.text("compute-us"), kMostComputeUs);
  if (given.text("read-ahead") == "0")
    input.read_ahead = 0;
  else
    input.read_ahead = given.count("read-ahead", 1, kMostReadAhead);
  input.loops = given.loops();
  input.folder = given.text("folder");
  return input;
}

}  // namespace

Command input_command() {
  return {.name = "input",
          .group = "The input pipeline",
          .text = "numbers in memory and files, next to read()",
          .about = kInputAbout,
          .options = input_options,
          .parse = parse_input};
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const InputResult& result) {
  using Row = InputRow;
  const auto waiting_percent = [](const Row& row) -> std::optional<double> {
    if (!row.waiting_share) return std::nullopt;
    return 100 * *row.waiting_share;
  };
  const RowsReport<Row> report{
      .name = "input",
      .facts = {{"record_bytes", result.record_bytes},
                {"file_bytes", result.file_bytes},
                {"loops", result.loops}},
      .introduction = fmt::format(
          "# input: files of {} MiB from the system's cache, elements of {} bytes, median of {} passes\n"
          "# no replicas: the source alone, on one thread; read(): the system call on the same file\n"
          "# waiting: share of the step's time in which the program waits for its batch, while it "
          "computes\n\n",
          result.file_bytes >> 20, result.record_bytes, result.loops),
      .fields = {{"source", &Row::source},
                 {"replicas", &Row::replicas},
                 {"batch", &Row::batch},
                 {"batches_per_s", &Row::batches_per_s, "{:.1f}"},
                 {"elements_per_s", &Row::elements_per_s, "{:.1f}"},
                 {"bytes_per_s", &Row::bytes_per_s, "{:.0f}"},
                 {"compute_us", &Row::compute_us, "{}", FieldIn::kJson},
                 {"waiting_share", &Row::waiting_share, "{:.4f}"},
                 {"peak_rss_bytes", &Row::peak_rss_bytes}},
      .columns = {
          {"source", -20, &Row::source},
          {"replicas", 8, &Row::replicas},
          {"batch", 6, &Row::batch},
          {"batches/s", 11, &Row::batches_per_s},
          {"elements/s", 12, &Row::elements_per_s},
          {"MB/s", 8, [](const Row& row) { return 1e-6 * row.bytes_per_s; }},
          {"compute us", 11, &Row::compute_us},
          {"waiting %", 9, waiting_percent},
          {"peak MB", 9, [](const Row& row) { return 1e-6 * static_cast<double>(row.peak_rss_bytes); }}}};
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
