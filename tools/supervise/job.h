// What becomes of a job when its tasks end, wherever they ran: whether it goes on, is over or has failed, and
// with which status it ends. Decides, and does nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/cluster_roles.h>

namespace cohort::supervise {

/// The job of parameter servers.
inline constexpr std::string_view kServerJob = "ps";

/// How a process ended: with a status of its own, or by a signal.
struct Ending {
  int status = 0;
  int signal = 0;  ///< 0: none

  [[nodiscard]] bool good() const noexcept { return status == 0 && signal == 0; }
  /// As shells count it.
  [[nodiscard]] int exit_status() const noexcept { return signal != 0 ? 128 + signal : status; }
};

/// For example `was ended by SIGKILL`, `ended with status 3`.
[[nodiscard]] std::string describe(const Ending& ending);

class Job {
 public:
  /// @throws InvalidArgument for tasks that are no cluster, and where none of them trains.
  explicit Job(std::vector<ClusterTask> tasks);

  [[nodiscard]] const std::vector<ClusterTask>& tasks() const noexcept { return tasks_; }

  /// The chief, or worker 0 where there is none.
  [[nodiscard]] const ClusterTask& chief() const noexcept { return chief_; }

  /// The task has ended, and is not started again.
  void end(const ClusterTask& task, const Ending& ending);

  [[nodiscard]] bool has_ended(const ClusterTask& task) const;

  /// All but parameter servers have ended, and these are not needed any more.
  [[nodiscard]] bool is_over() const noexcept;

  /// The chief has failed: the others would wait for it in vain.
  [[nodiscard]] bool has_failed() const noexcept;

  /// Tasks that still run although the chief has ended, and are waited for.
  [[nodiscard]] std::vector<ClusterTask> stragglers() const;

  /// The chief's, or else that of the first task that ended with another than 0 before the job was over. A
  /// task that a signal ended was lost: if the chief could do without it, so can the job.
  [[nodiscard]] int exit_status() const noexcept;

 private:
  [[nodiscard]] std::size_t index_of(const ClusterTask& task) const;

  std::vector<ClusterTask> tasks_;
  std::vector<bool> ended_;
  ClusterTask chief_;
  std::optional<Ending> end_of_chief_;
  int first_failure_ = 0;
};

/// The tasks of a list such as `chief=1,worker=2,ps=2`, in its order.
/// @throws InvalidArgument for text of another form.
[[nodiscard]] std::vector<ClusterTask> tasks_of_roles(std::string_view roles);

/// On which of the hosts each task runs: in turn, from the chief on the first host.
[[nodiscard]] std::vector<int> spread(const std::vector<ClusterTask>& tasks, int hosts);

}  // namespace cohort::supervise
