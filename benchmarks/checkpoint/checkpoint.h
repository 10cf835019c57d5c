// Measures saving, restoring and verifying checkpoints in one process, in turns with `cp` and fsync() of the
// same bytes in the same folder: one large variable, then small ones beside one of the same bytes. What is
// read has just been written, and comes from the system's cache. While a checkpoint is saved in the
// background, two replicas compute, and the time that their steps lose is measured.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "environment.h"
#include "run_context.h"

namespace cohort::bench {

struct CheckpointBenchOptions {
  int mib = 1024;            ///< of the large variable
  int small_values = 10000;  ///< each of 4 KiB
  int loops = 5;             ///< per figure, of which the median counts
  std::string folder = {};   ///< where checkpoints are written; empty: that of temporary files
};

struct CheckpointRow {
  std::string_view mode = {};  ///< `save`, `save_async`, `restore` or `verify`
  std::size_t bytes = 0;
  std::int64_t values = 1;
  double seconds = 0;       ///< of the call
  double copy_seconds = 0;  ///< of `cp` and fsync(), in turns with it
  /// Of the time of steps that compute on two cores while a checkpoint is written, the part that they lose.
  std::optional<double> step_loss = {};
  std::optional<double> original_seconds = {};  ///< of the same in the original, where it was measured

  [[nodiscard]] double gib_per_s() const noexcept {
    return static_cast<double>(bytes) / seconds / (std::size_t{1} << 30);
  }
  [[nodiscard]] double ratio_to_copy() const noexcept { return copy_seconds / seconds; }
};

struct CheckpointResult {
  int loops = 0;
  std::vector<CheckpointRow> rows;
};

/// @throws Error when files cannot be written, or what was read is not what was written.
[[nodiscard]] CheckpointResult measure(const CheckpointBenchOptions& options, const CommandContext& context);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const CheckpointResult& result);

}  // namespace cohort::bench
