// Measures how fast the chief reads and assigns variables that parameter servers keep, and rows of large
// tables, in turns with plain copies of the same bytes in its own memory. With several servers there is a
// variable on each, and one thread takes them in turn. If there are servers on another host, those of one
// such host are measured alone, beside a plain TCP connection to it.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "environment.h"
#include "option_values.h"
#include "run_context.h"

namespace cohort::bench {

struct ParametersOptions {
  SizeRange sizes = {4, std::size_t{256} << 20};  ///< of a variable
  int table_mib = 256;  ///< of each table whose rows are looked up: more than the last-level cache
  int loops = 5;        ///< per figure, of which the median counts
};

struct ParametersRow {
  std::string name = {};  ///< of the case: pull, push or rows
  int servers = 1;
  std::size_t bytes = 0;  ///< of a variable, or of a row
  double us = 0;          ///< of one variable, or of one row
  double gib_per_s = 0;
  double limit_gib_per_s = 0;  ///< of memcpy by one thread, or of the wire, in turns with it

  [[nodiscard]] double ratio_to_limit() const noexcept { return gib_per_s / limit_gib_per_s; }
};

struct ParametersResult {
  int table_mib = 0;
  int loops = 0;
  std::vector<ParametersRow> rows;
};

/// @throws Error when tasks fail, or what was read is not what was written.
[[nodiscard]] ParametersResult measure(const ParametersOptions& options, const CommandContext& context);

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const ParametersResult& result);

}  // namespace cohort::bench
