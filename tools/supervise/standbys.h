// On which host each task runs, and which servers' standbys could go on in their place. Kept by the
// supervisor that leads, and by no other, so that a server and its standby never both serve. Decides, and
// does nothing. Tasks are known by their numbers in the job's list.
#pragma once

#include <cstddef>
#include <vector>

#include <cohort/cluster/cluster_roles.h>

namespace cohort::supervise {

inline constexpr int kNoHost = -1;

/// On which host the standby of each task runs: that of a `ps` on the host after its own in turn. kNoHost for
/// other tasks, for a `ps` on the first host, with which the job ends, and where there is one host.
[[nodiscard]] std::vector<int> spread_standbys(const std::vector<ClusterTask>& tasks,
                                               const std::vector<int>& hosts, int host_count);

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
