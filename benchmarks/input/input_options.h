// How the input pipeline is measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cohort::bench {

struct InputBenchOptions {
  std::int64_t batch = 64;           ///< elements of a global batch
  std::int64_t record_bytes = 4096;  ///< of an element of a file
  std::int64_t file_mib = 64;        ///< of each file
  std::optional<double> compute_us;  ///< of a step; unset: 2.5 times what making its batch takes
  int read_ahead = 1;                ///< batches per replica that a thread makes ahead of the program
  int loops = 5;                     ///< passes per figure, of which the median counts
  std::string folder;                ///< where the files are written; empty: that of temporary files
};

}  // namespace cohort::bench
