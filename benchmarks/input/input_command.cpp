#include "commands.h"
#include "option_values.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kInputAbout =
    R"(input: how many elements and batches numbers in memory and files of several formats deliver to one and
two replicas, and how long a program that computes waits for them. In one process.

  cohort-bench input [options]
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

}  // namespace cohort::bench
