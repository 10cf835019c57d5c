// Measures what a ClusterCoordinator adds to the functions that it has run: empty ones, and ones that change
// a variable, or two variables on two parameter servers. Coordinator, workers and servers are processes of
// one node, unless `cohort-run --roles` has started them. Compared with figures that were measured of the
// original.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "environment.h"
#include "run_context.h"

namespace cohort::bench {

struct CoordinatorOptions {
  int loops = 5;  ///< per figure, of which the median counts
};

struct CoordinatorRow {
  std::string name = {};  ///< of the case
  int workers = 0;        ///< none: the server's part alone, in this process
  int servers = 1;
  double closures_per_s = 0;                  ///< all scheduled, then joined
  std::optional<double> chief_cpu_us = {};    ///< of all threads of the coordinator's process, per closure
  std::optional<double> round_trip_us = {};   ///< one scheduled, then its result fetched
  std::optional<double> original_per_s = {};  ///< of the same in the original, where it was measured
  std::optional<double> original_trip_us = {};
};

struct CoordinatorResult {
  int loops = 0;
  std::vector<CoordinatorRow> rows;
};

/// @throws Error when tasks fail, or a function has not had its effect exactly once.
[[nodiscard]] CoordinatorResult measure(const CoordinatorOptions& options, const CommandContext& context);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const CoordinatorResult& result);

}  // namespace cohort::bench
