// The text that assigns roles to the ranks of a job: `chief=1,worker=2,evaluator=1`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// The number of tasks of one job.
struct RoleCount {
  std::string job = {};
  int tasks = 0;  ///< at least 1
};

/// In the order of the text, which is that of the ranks; no job occurs twice.
/// @throws InvalidArgument saying at which character the text is wrong, and what its form is.
[[nodiscard]] std::vector<RoleCount> parse_role_list(std::string_view text);

}  // namespace cohort
