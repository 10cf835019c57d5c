// What becomes of a job when its tasks end or hosts are lost: whether it goes on, is over or has failed, with
// which status it ends, and which servers go on as their standbys. Decides, and does nothing.
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

/// Which of the tasks have ended, wherever they ran.
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

inline constexpr int kNoHost = -1;

/// On which host the standby of each task runs: that of a `ps` on the host after its own in turn. kNoHost for
/// other tasks, for a `ps` on the first host, with which the job ends, and where there is one host.
[[nodiscard]] std::vector<int> spread_standbys(const std::vector<ClusterTask>& tasks,
                                               const std::vector<int>& hosts, int host_count);

/// On which host each task runs, and which servers' standbys could go on in their place. Kept by the
/// supervisor that leads, and by no other, so that a server and its standby never both serve. Tasks are known
/// by their numbers in the job's list.
class Standbys {
 public:
  /// Whether a server's standby can take over.
  enum class State {
    kNone,        ///< there is none, or it has taken over already
    kIncomplete,  ///< it has not all that was committed, or its server may commit without it
    kComplete,    ///< it can
    kLost,        ///< its host is lost
  };

  /// On which hosts tasks run, and as `spread_standbys` gives it.
  Standbys(std::vector<int> hosts, std::vector<int> standby_hosts);

  /// Where the task runs now.
  [[nodiscard]] int host_of(std::size_t task) const { return servers_.at(task).host; }
  [[nodiscard]] State state_of(std::size_t task) const { return servers_.at(task).state; }

  /// kNoHost in the state kNone.
  [[nodiscard]] int standby_host_of(std::size_t task) const { return servers_.at(task).standby_host; }

  /// A server on that host asks to commit without its standby. Whether it may: then the standby cannot take
  /// over. One whose standby has taken over may not.
  [[nodiscard]] bool may_go_alone(std::size_t task, int host);

  /// A server on that host says that its standby has all that was committed.
  void copied(std::size_t task, int host);

  /// The standbys on that host are gone.
  void lose_host(int host);

  /// From now on the task runs where its standby does, which is complete.
  void take_over(std::size_t task);

 private:
  struct Server {
    int host = kNoHost;
    int standby_host = kNoHost;
    State state = State::kNone;
  };
  std::vector<Server> servers_;
};

}  // namespace cohort::supervise
