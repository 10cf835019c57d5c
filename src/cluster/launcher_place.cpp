#include "launcher_place.h"

#include <array>

#include <cohort/base/error.h>

namespace cohort {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* size;  ///< null: it does not tell
};

// The nearest to the process first.
constexpr Launcher kOpenMpi{"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
constexpr Launcher kHydra{"an mpirun or srun with PMI", "PMI_RANK", "PMI_SIZE"};
constexpr Launcher kPmix{"a launcher with PMIx", "PMIX_RANK", nullptr};
// A batch script has a SLURM_PROCID, too, but no step.
constexpr Launcher kSlurmStep{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"};

/// Slurm's PMIx does not give the size. Slurm's other variables do, but in a container they may be missing.
bool is_pmix_of_slurm(const Environment& variables) {
  const auto found = variables.find("PMIX_NAMESPACE");
  return found != variables.end() && found->second.starts_with("slurm.") &&
         variables.contains(kSlurmStep.rank);
}

const Launcher* nearest(const Environment& variables) {
  if (variables.contains(kOpenMpi.rank)) return &kOpenMpi;
  if (variables.contains(kPmix.rank)) return is_pmix_of_slurm(variables) ? &kSlurmStep : &kPmix;
  if (variables.contains(kHydra.rank)) return &kHydra;
  if (variables.contains(kSlurmStep.size)) return &kSlurmStep;
  return nullptr;
}

}  // namespace

std::optional<LauncherPlace> launcher_place(const Environment& variables) {
  const Launcher* launcher = nearest(variables);
  if (launcher == nullptr) return std::nullopt;
  const std::optional<int> rank = number_in(variables, launcher->rank);
  if (!rank)
    throw InvalidArgument("{} is not set, but other variables of {} are", launcher->rank, launcher->name);
  LauncherPlace place{.launcher = launcher->name, .size_variable = {}, .rank = *rank};
  if (launcher->size != nullptr) {
    place.size = number_in(variables, launcher->size);
    if (place.size) place.size_variable = launcher->size;
  }
  if (place.size && place.rank >= *place.size) {
    throw InvalidArgument("{} is {}, but {} is {}; a rank must be less", launcher->rank, place.rank,
                          launcher->size, *place.size);
  }
  return place;
}

bool is_first_rank() {
  try {
    const auto place = launcher_place();
    return !place || place->rank == 0;
  } catch (const InvalidArgument&) {
    return true;
  }
}

}  // namespace cohort
