// What the launcher's variables say of this process, before and without MPI or a GPU's driver: its rank, the
// number of processes, and the GPUs that it is left. The launcher nearest to the process counts: under mpirun
// inside a Slurm job, Slurm's variables are those of mpirun's daemons.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

/// The entries of CUDA_VISIBLE_DEVICES up to the first that is neither a number nor a GPU's identifier;
/// nothing where it is not set.
[[nodiscard]] std::optional<std::vector<std::string>> listed_gpus(
    const Environment& variables = process_environment());

/// The number of listed GPUs, or else SLURM_GPUS_ON_NODE; nothing where neither is set, or the latter is no
/// number.
[[nodiscard]] std::optional<int> visible_gpus(const Environment& variables = process_environment());

}  // namespace cohort
