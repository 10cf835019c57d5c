// The tasks of a cluster as processes of this node: the program that runs now, started again for each worker
// and server with a card, as `cohort-run --roles` would start it. Whoever makes this is the chief. A process
// forked without a program of its own would share memory with the chief that only one may have.
//
// The program finds its card by TaskClusterResolver, before it does anything else. One thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>

#include <cohort/remote/local_cluster.h>

namespace cohort::remote {

/// Starts the running program again as the task of the place, which the process inherits as a card. It ends
/// with the calling thread. @throws Unavailable when the system refuses.
[[nodiscard]] pid_t start_process(const TaskPlace& place);

class TaskProcesses {
 public:
  /// Starts `workers` and `servers` processes. Without workers, the cluster has one that does not come.
  /// @throws Unavailable when the system refuses.
  TaskProcesses(int workers, int servers);
  /// Kills what still runs.
  ~TaskProcesses();
  TaskProcesses(const TaskProcesses&) = delete;
  TaskProcesses& operator=(const TaskProcesses&) = delete;

  [[nodiscard]] const TaskPlace& chief() const { return cluster_.place({"chief", 0}); }

  /// Of a task that the caller plays itself.
  [[nodiscard]] const TaskPlace& place(const ClusterTask& task) const { return cluster_.place(task); }

  /// Starts a task, or starts it again: with the same listeners, and a server with the same memory.
  void start(const ClusterTask& task);
  void signal(const ClusterTask& task, int signal);

  /// Waits for the end of a task; the status as of waitpid.
  int wait(const ClusterTask& task);

  /// Waits until one of the tasks ends, and says which. For a process that has no other children.
  ClusterTask wait_for_any();
  void kill(const ClusterTask& task);

 private:
  LocalCluster cluster_;
  std::map<std::string, pid_t> pids_;
};

}  // namespace cohort::remote
