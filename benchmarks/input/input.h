// Measures the input pipeline in one process: in-memory numbers, and files of several formats, element by
// element and in batches that one replica gets or two share; how long a program that computes waits for
// its batches; and, as what the machine allows, read() of the same files. The files have just been
// written, so they come from the system's cache and not from a disk.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "environment.h"
#include "run_context.h"

namespace cohort::bench {

struct InputBenchOptions {
  std::int64_t batch = 64;                ///< elements of a global batch
  std::int64_t record_bytes = 4096;       ///< of an element of a file
  std::int64_t file_mib = 64;             ///< of each file
  std::optional<double> compute_us = {};  ///< of a step; unset: 2.5 times what making its batch takes
  int read_ahead = 1;                     ///< batches per replica that a thread makes ahead of the program
  int loops = 5;                          ///< passes per figure, of which the median counts
  std::string folder = {};                ///< where the files are written; empty: that of temporary files
};

/// What a source delivers to a number of replicas, or alone.
struct InputRow {
  std::string source = {};  ///< `range`, `csv`, ..., or `read(csv)` for the bare system call on that file
  std::optional<int> replicas = {};           ///< unset: the source alone, on one thread
  std::optional<std::int64_t> batch = {};     ///< unset: element by element
  std::optional<double> batches_per_s = {};   ///< of global batches
  std::optional<double> elements_per_s = {};  ///< unset: the file is only read
  double bytes_per_s = 0;                     ///< of the file, or of the elements in memory
  std::optional<double> compute_us = {};      ///< of each replica in a step
  std::optional<double> waiting_share = {};   ///< of the steps' time that the program waited for its batch
  std::uint64_t peak_rss_bytes = 0;           ///< of the process, which holds nothing else, during the row
};

struct InputResult {
  std::int64_t record_bytes = 0;
  std::int64_t file_bytes = 0;
  int loops = 0;
  std::vector<InputRow> rows;
};

/// @throws Error when the files cannot be written.
[[nodiscard]] InputResult measure(const InputBenchOptions& options, const CommandContext& context);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const InputResult& result);

}  // namespace cohort::bench
