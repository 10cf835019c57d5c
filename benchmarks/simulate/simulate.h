// Predicts the times of collectives between many nodes: the library's own code, with all members in one
// thread, on a virtual clock and over a network by a model. Also carries out jobs in which something goes
// wrong.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/collective/collective_kind.h>

#include "environment.h"
#include "run_context.h"
#include "simulation/simulated_network.h"

namespace cohort::bench {

/// Of calls with a number of bytes.
inline constexpr std::array kSimulatedKinds{CollectiveKind::kAllReduce,     CollectiveKind::kReduce,
                                            CollectiveKind::kBroadcast,     CollectiveKind::kAllGather,
                                            CollectiveKind::kReduceScatter, CollectiveKind::kGather,
                                            CollectiveKind::kScatter,       CollectiveKind::kAllToAll};

struct SimulateOptions {
  int nodes = 256;  ///< the most; also 2, 4, and so on up to them
  int lanes = 4;    ///< members of each node
  simulation::NetworkModel network = {};
  std::optional<std::size_t> bytes = {};    ///< of the largest buffer of each call; none: of each, some sizes
  std::optional<CollectiveKind> kind = {};  ///< of the calls; none: all kinds
  std::optional<std::uint64_t> faults = {};  ///< so many jobs with a fault, and no times
  std::uint64_t seed = 1;                    ///< of the first of them
  std::string plot = {};                     ///< file for a picture of the times; empty: none
};

struct SimulateRow {
  std::string_view collective;
  int nodes = 0;
  std::size_t bytes = 0;  ///< of the block of one member, or of the whole data; or as asked for
  std::string_view algorithm;
  double simulated_us = 0;
  double formula_us = 0;
};

struct SimulateResult {
  SimulateOptions options;
  std::vector<SimulateRow> rows;
};

/// @throws Internal where a job with a fault hangs, is wrong, or blames an innocent member, with its seed.
[[nodiscard]] SimulateResult measure(const SimulateOptions& options, const CommandContext& context);

/// In SVG. Expects times.
void write_plot(std::ostream& stream, const SimulateResult& result);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const SimulateResult& result);

}  // namespace cohort::bench
