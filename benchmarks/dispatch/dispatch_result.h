// What the strategy layer costs a step: a row per operation.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cohort::bench {

struct DispatchRow {
  std::string operation;
  int devices = 1;
  double ns = 0;                      ///< of one operation, median of the loops
  double allocations = 0;             ///< calls of operator new per operation, on all threads
  std::optional<double> original_us;  ///< of the same in the original, where it was measured
};

struct DispatchResult {
  int loops = 0;
  std::vector<DispatchRow> rows;
};

}  // namespace cohort::bench
