// What the input pipeline delivers: a row per source and number of replicas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cohort::bench {

struct InputRow {
  std::string source;           ///< `range`, `csv`, ..., or `read(csv)` for the bare system call on that file
  std::optional<int> replicas;  ///< unset: the source alone, on one thread
  std::optional<std::int64_t> batch;     ///< unset: element by element
  std::optional<double> batches_per_s;   ///< of global batches
  std::optional<double> elements_per_s;  ///< unset: the file is only read
  double bytes_per_s = 0;                ///< of the file, or of the elements in memory
  std::optional<double> compute_us;      ///< of each replica in a step
  std::optional<double> waiting_share;   ///< of the steps' time that the program waited for its batch
  std::uint64_t peak_rss_bytes = 0;      ///< of the process, which holds nothing else, during the row
};

struct InputResult {
  std::int64_t record_bytes = 0;
  std::int64_t file_bytes = 0;
  int loops = 0;
  std::vector<InputRow> rows;
};

}  // namespace cohort::bench
