// The job of a benchmark with parameter servers: the tasks that `cohort-run --roles` has started, of which
// this process is the chief, or else processes of its own; and the wire to another host of it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <cohort/coordinator/cluster_coordinator.h>
#include <cohort/remote/task_place.h>
#include <cohort/server/parameter_server_strategy.h>

#include "cluster/sockets.h"
#include "remote/task_processes.h"

namespace cohort::bench {

/// Whether this process is a task that is not the chief: it runs `serve_as_task` and nothing else.
[[nodiscard]] bool is_serving_task();
[[nodiscard]] int serve_as_task();

/// Whether the tasks are there already, so that there is one job alone, of the size that they have.
[[nodiscard]] bool has_tasks();

struct JobSize {
  int workers = 1;
  int servers = 1;
};
/// Of the tasks that are there.
[[nodiscard]] JobSize size_of_tasks();

/// It ends with this object. One thread.
class ServerJob {
 public:
  /// Takes the tasks that are there, or starts as many as `size` says. @throws what the strategy throws.
  explicit ServerJob(const JobSize& size);
  ~ServerJob();
  ServerJob(const ServerJob&) = delete;
  ServerJob& operator=(const ServerJob&) = delete;

  [[nodiscard]] const JobSize& size() const noexcept { return size_; }
  [[nodiscard]] const ParameterServerStrategy& strategy() const noexcept { return *strategy_; }
  [[nodiscard]] const std::string& host() const;  ///< of this process
  [[nodiscard]] std::vector<std::string> hosts_of_servers() const;

  /// Made by the first call.
  [[nodiscard]] const ClusterCoordinator& coordinator();

 private:
  JobSize size_;
  std::optional<remote::TaskProcesses> processes_;
  std::optional<ParameterServerStrategy> strategy_;
  std::optional<ClusterCoordinator> coordinator_;
};

/// A plain TCP connection between the chief and a worker on another host: what the wire between the two
/// carries when nothing stands between the program and its sockets. One thread at each end.
class Wire {
 public:
  /// Occupies all workers of `job` until it ends, for any of them may be the one on `host`.
  /// @throws Unavailable when none is.
  Wire(ServerJob& job, const std::string& host);

  /// Sends so many bytes to the other end, which then sends so many back.
  /// @throws Unavailable when the connection is lost.
  void exchange(std::size_t sent, std::size_t received);

 private:
  std::string host_;
  watch::Fd connection_;
  std::vector<std::byte> buffer_;
};

}  // namespace cohort::bench
