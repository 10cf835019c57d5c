#include "launch_agreement.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/mpi/session.h>

namespace cohort::mpi {
namespace {

/// The workers whose answer is not that of most, each as `worker 2 (...) VERB ANSWER`.
template <class Answer>
struct Minority {
  Minority(std::span<const WorkerInfo> workers, std::span<const Answer> answers, const char* verb) {
    std::map<Answer, int> votes;
    for (const Answer& answer : answers) ++votes[answer];
    const auto most = std::max_element(votes.begin(), votes.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    common = most->first;
    others = most->second;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i] != common)
        members.push_back(fmt::format("{} {} {}", describe(workers[i]), verb, answers[i]));
    }
  }

  std::vector<std::string> members;
  Answer common{};
  int others = 0;
};

[[noreturn]] void refuse_to_be_alone(const WorkerInfo& worker, const LauncherPlace& place) {
  throw InvalidArgument(
      "host {}, pid {}: {} started this process as rank {} of {} ({}), but MPI, {}, knows nothing of the "
      "others: the launcher does not belong to this MPI library. Start the program with the mpirun of the "
      "library that it was built with, or with srun --mpi=pmix (srun --mpi=list names what there is); unset "
      "{} "
      "where separate runs are meant",
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
          "{}: {} says that there are {} workers, but MPI has {}. The variable was changed after the launch, "
          "or "
          "is that of another launcher around this one: look for it in the job script and in the shell's "
          "start-up "
          "files on that host",
          describe(workers[i]), place->size_variable, *place->size, size);
    }
    if (place->rank != workers[i].rank) {
      throw InvalidArgument(
          "{}: its launcher, {}, says that it is rank {}, but MPI numbers it {}. The variables were changed "
          "after "
          "the launch, or are those of another launcher around this one: look for them in the job script and "
          "in the shell's start-up files on that host",
          describe(workers[i]), place->launcher, place->rank, workers[i].rank);
    }
  }
}

void require_same_version(std::span<const WorkerInfo> workers, std::span<const std::string> versions) {
  const Minority<std::string> odd(workers, versions, "runs");
  if (odd.members.empty()) return;
  throw InvalidArgument(
      "all workers must run the same version of Cohort, but {}, while the other {} run {}. Rebuild the "
      "program, "
      "or look at the library path on those hosts.",
      fmt::join(odd.members, ", "), odd.others, odd.common);
}

void require_same_devices(std::span<const WorkerInfo> workers, std::span<const int> devices) {
  const Minority<int> odd(workers, devices, "has");
  if (odd.members.empty()) return;
  throw InvalidArgument(
      "all workers must have the same number of CPU devices, but {}, while the other {} have {}. Give "
      "COHORT_CPU_DEVICES to all of them: mpirun -x COHORT_CPU_DEVICES hands it to other hosts.",
      fmt::join(odd.members, ", "), odd.others, odd.common);
}

std::string warning_of_other_gpus(std::span<const WorkerInfo> workers,
                                  std::span<const std::optional<int>> gpus) {
  std::vector<std::string> answers;
  for (const std::optional<int>& count : gpus)
    answers.push_back(!count        ? "no variable that names its GPUs"
                      : *count == 1 ? "1 GPU"
                                    : fmt::format("{} GPUs", *count));
  const Minority<std::string> odd(workers, answers, "has");
  if (odd.members.empty()) return {};
  return fmt::format(
      "the launcher leaves workers different numbers of GPUs: {}, while the other {} have {}. Where all are "
      "to "
      "train on GPUs, ask for the same on each node (--gpus-per-task), and hand CUDA_VISIBLE_DEVICES to "
      "other "
      "hosts or to none (mpirun -x)",
      fmt::join(odd.members, ", "), odd.others, odd.common);
}

}  // namespace cohort::mpi
