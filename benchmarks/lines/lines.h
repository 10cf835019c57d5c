// Counts the cache lines and bytes that calls of many members move between the cores of a machine that is
// only described, once with members that look at each other's lines, once with members that meet by its
// levels. The members are threads of this process, and the code is the engine's own; the times are
// predictions from published latencies.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "environment.h"
#include "run_context.h"

namespace cohort::bench {

enum class LatencyTable { kEpyc, kXeon };

struct LinesOptions {
  std::string topology = "pack:2 l3:8 core:8 pu:1";  ///< as `cohort-info --topology` takes it
  int members = 0;                                   ///< 0: one per core of the machine
  LatencyTable latencies = LatencyTable::kEpyc;
};

struct LinesRow {
  std::string_view collective;
  std::string_view engine;  ///< `flat` or `levels`
  std::size_t bytes = 0;    ///< that one member contributes
  int chain = 0;            ///< cache lines in the longest chain of waits
  int chain_far = 0;        ///< of them, from another socket
  double read = 0;          ///< bytes that the member which reads most reads of others, in contributions
  double cross_socket = 0;  ///< bytes that cross between sockets in all, in contributions
  double predicted_us = 0;
};

struct LinesResult {
  std::string topology;
  int members = 0;
  std::string_view latencies;  ///< what was taken for the predictions
  std::vector<LinesRow> rows;
};

[[nodiscard]] LinesResult measure(const LinesOptions& options, const CommandContext& context);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const LinesResult& result);

}  // namespace cohort::bench
