// The notations of lists that resolvers read: the roles that a user gives the ranks of a job, and the two in
// which Slurm abbreviates lists in its variables.
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

/// The roles of `chief=1,worker=2,evaluator=1`, in the order of the text, which is that of the ranks; no job
/// occurs twice.
/// @throws InvalidArgument saying at which character the text is wrong, and what its form is.
[[nodiscard]] std::vector<RoleCount> parse_role_list(std::string_view text);

/// More hosts than any cluster has; longer lists of Slurm are refused.
inline constexpr int kMostSlurmEntries = 250'000;

/// The hosts of `n[1-2],m5,rack[08-11]s[0,2]`, in order: ranges keep their zeros, several brackets
/// combine, the last one fastest. @throws InvalidArgument saying at which character the list is wrong.
[[nodiscard]] std::vector<std::string> expand_host_list(std::string_view list);

/// The tasks of each node of `3(x2),1`: 3, 3, 1. @throws InvalidArgument as above.
[[nodiscard]] std::vector<int> expand_tasks_per_node(std::string_view list);

}  // namespace cohort
