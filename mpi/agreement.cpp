#include "agreement.h"

#include <cstddef>

#include <cohort/base/error.h>
#include <cohort/mpi/session.h>

namespace cohort::mpi {
namespace {

[[noreturn]] void refuse_to_be_alone(const WorkerInfo& worker, const LauncherPlace& place) {
  throw InvalidArgument(
      "host {}, pid {}: {} started this process as rank {} of {} ({}), but MPI, {}, knows nothing of the "
      "others: the launcher does not belong to this MPI library. Start the program with the mpirun of the "
      "library that it was built with, or with srun --mpi=pmix (srun --mpi=list names what there is); "
      "unset {} where separate runs are meant",
      worker.host, worker.pid, place.launcher, place.rank, *place.size, place.size_variable,
      library_version().substr(0, library_version().find(',')), place.size_variable);
}

}  // namespace

void require_places_of_launcher(std::span<const WorkerInfo> workers,
                                std::span<const std::optional<LauncherPlace>> places) {
  const auto size = static_cast<int>(workers.size());
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto& place = places[i];
    if (!place) continue;
    if (size == 1 && place->size.value_or(1) > 1) refuse_to_be_alone(workers[i], *place);
    if (place->size.value_or(size) != size) {
      throw InvalidArgument(
          "{}: {} says that there are {} workers, but MPI has {}. The variable was changed after the "
          "launch, or is that of another launcher around this one: look for it in the job script and in "
          "the shell's start-up files on that host",
          describe(workers[i]), place->size_variable, *place->size, size);
    }
    if (place->rank != workers[i].rank) {
      throw InvalidArgument(
          "{}: its launcher, {}, says that it is rank {}, but MPI numbers it {}. The variables were "
          "changed after the launch, or are those of another launcher around this one: look for them in "
          "the job script and in the shell's start-up files on that host",
          describe(workers[i]), place->launcher, place->rank, workers[i].rank);
    }
  }
}

}  // namespace cohort::mpi
