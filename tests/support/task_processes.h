// The tasks of a cluster as processes: the test's own program, started again for each worker and server. The
// test is the chief. A process forked without that would share memory with the test that only one may have.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <cohort/remote/local_cluster.h>

namespace cohort::test {

class TaskProcesses {
 public:
  /// Starts `workers` and `servers` processes. Without workers, the cluster has one that does not come.
  TaskProcesses(int workers, int servers);
  /// Kills what still runs.
  ~TaskProcesses();
  TaskProcesses(const TaskProcesses&) = delete;
  TaskProcesses& operator=(const TaskProcesses&) = delete;

  [[nodiscard]] const remote::TaskPlace& chief() const { return cluster_.place({"chief", 0}); }

  /// Starts a task, or starts it again: with the same listeners, and a server with the same memory.
  void start(const ClusterTask& task);
  void signal(const ClusterTask& task, int signal);

  /// Waits for the end of a task; the status as of waitpid.
  int wait(const ClusterTask& task);
  void kill(const ClusterTask& task);

 private:
  remote::LocalCluster cluster_;
  std::map<std::string, pid_t> pids_;
};

}  // namespace cohort::test
