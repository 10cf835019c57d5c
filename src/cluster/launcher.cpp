#include "launcher.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

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

/// Nothing for a text that is not a number: only a warning depends on it.
std::optional<int> number_of_slurm(const Environment& variables) {
  try {
    return number_in(variables, "SLURM_GPUS_ON_NODE");
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

bool is_gpu(std::string_view entry) {
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) return true;
  return !entry.empty() && std::ranges::all_of(entry, [](unsigned char c) { return std::isdigit(c) != 0; });
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

std::optional<std::vector<std::string>> listed_gpus(const Environment& variables) {
  const auto found = variables.find("CUDA_VISIBLE_DEVICES");
  if (found == variables.end()) return std::nullopt;
  const std::string_view list = found->second;
  std::vector<std::string> gpus;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view entry = list.substr(begin, end - begin);
    if (!is_gpu(entry)) break;
    gpus.emplace_back(entry);
    begin = end + 1;
  }
  return gpus;
}

std::optional<int> visible_gpus(const Environment& variables) {
  const auto listed = listed_gpus(variables);
  return listed ? static_cast<int>(listed->size()) : number_of_slurm(variables);
}

}  // namespace cohort
