// The rank of this process and the number of processes, as the launcher's variables give them, before and
// without MPI. The launcher nearest to the process counts: under mpirun inside a Slurm job, Slurm's variables
// are those of mpirun's daemons.
#pragma once

#include <optional>
#include <string>

#include <cohort/base/environment.h>

namespace cohort {

struct LauncherPlace {
  std::string launcher = {};       ///< for example `Open MPI's mpirun`
  std::string size_variable = {};  ///< where `size` comes from; empty without one
  int rank = 0;
  std::optional<int> size = {};  ///< PMIx alone does not give it
};

/// Nothing for a process that no launcher has started.
/// @throws InvalidArgument for a variable that is no number, a size without a rank, or a rank beyond its
/// size.
[[nodiscard]] std::optional<LauncherPlace> launcher_place(
    const Environment& variables = process_environment());

/// Whether this process speaks for all copies of its program: rank 0, or a process that no launcher
/// has started, as far as the variables make sense.
[[nodiscard]] bool is_first_rank();

}  // namespace cohort
