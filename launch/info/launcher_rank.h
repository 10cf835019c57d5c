// Which of several copies of a program speaks, before or without MPI: launchers tell each
// process its rank in the environment.
#pragma once

#include <array>
#include <cstdlib>
#include <string_view>

namespace cohort {

/// True for rank 0, and for a process that no launcher started.
[[nodiscard]] inline bool is_first_rank() {
  // Open MPI, any launcher with PMIx, MPICH and its kin, Slurm: whoever is nearest to the process.
  constexpr std::array kRankVariables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (const char* name : kRankVariables) {
    if (const char* rank = std::getenv(name)) return std::string_view(rank) == "0";
  }
  return true;
}

}  // namespace cohort
