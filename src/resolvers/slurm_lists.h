// The two notations in which Slurm abbreviates lists in its variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// More hosts than any cluster has; longer lists are refused.
inline constexpr int kMostSlurmEntries = 250'000;

/// The hosts of `n[1-2],m5,rack[08-11]s[0,2]`, in order: ranges keep their zeros, several brackets
/// combine, the last one fastest. @throws InvalidArgument saying at which character the list is wrong.
[[nodiscard]] std::vector<std::string> expand_host_list(std::string_view list);

/// The tasks of each node of `3(x2),1`: 3, 3, 1. @throws InvalidArgument as above.
[[nodiscard]] std::vector<int> expand_tasks_per_node(std::string_view list);

}  // namespace cohort
