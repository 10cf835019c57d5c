// The command line of cohort-supervise.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cohort::supervise {

struct Options {
  std::string roles = {};
  int restarts = 0;
  int copies = 2;                         ///< of the variables of each `ps`, where there are several hosts
  std::vector<std::string> program = {};  ///< and its arguments
};

/// Nothing where the command line asks for `answer` alone, as --help does.
/// @throws InvalidArgument for one that makes no sense.
[[nodiscard]] std::optional<Options> parse_options(const std::vector<std::string>& arguments,
                                                   std::string& answer);

}  // namespace cohort::supervise
