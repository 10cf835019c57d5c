// The text that deals roles to the ranks of a job: `chief=1,worker=2,evaluator=1`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// So many tasks of one job.
struct RoleCount {
  std::string job;
  int tasks = 0;  ///< from 1
};

/// In the order of the text, in which ranks take them; no job is there twice.
/// @throws InvalidArgument saying at which character the text is wrong, and its form.
[[nodiscard]] std::vector<RoleCount> parse_role_list(std::string_view text);

}  // namespace cohort
