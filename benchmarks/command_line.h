// The command line of cohort-bench: `cohort-bench COLLECTIVE [options]`, checked completely,
// so that nothing is measured for a run that could not report its result.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective.h"
#include "harness.h"
#include "report.h"
#include "size_range.h"

namespace cohort::bench {

struct CommandLine {
  /// When not empty, this is all that was asked for.
  std::string help;

  const Collective* collective = nullptr;
  SizeRange sizes;
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  HarnessOptions harness;
  Format format = Format::kTable;
  std::optional<std::string> output;
};

/// `arguments` are those after the program's name.
/// @throws UsageError saying what is wrong, where, and what to do.
[[nodiscard]] CommandLine parse_command_line(const std::vector<std::string>& arguments,
                                             std::span<const Collective* const> collectives);

}  // namespace cohort::bench
