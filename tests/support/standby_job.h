// A job whose servers have standbys, as processes of this node, over which this process keeps watch as the
// supervisors of several hosts would. The test is the chief.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <cohort/remote/task_place.h>

#include "cluster/sockets.h"
#include "remote/supervised_task.h"

namespace cohort::test {

/// How tasks reach servers, and standbys do.
enum class Reach { kNode, kNetwork };

class StandbyJob {
 public:
  /// Starts servers, standbys and workers. Without workers, the job has one that does not come.
  StandbyJob(int workers, int servers, Reach reach = Reach::kNode);
  /// Kills what still runs.
  ~StandbyJob();
  StandbyJob(const StandbyJob&) = delete;
  StandbyJob& operator=(const StandbyJob&) = delete;

  [[nodiscard]] remote::TaskPlace chief() const { return place_of(tasks_[0]); }
  [[nodiscard]] remote::TaskPlace first_worker() const { return place_of(tasks_[1]); }

  /// Until the standby has all that its server has. Fails the test if it takes too long.
  void wait_until_complete(int server);

  [[nodiscard]] bool is_complete(int server);

  /// As when the server's host is lost: its standby takes over if it is complete. Says whether it was.
  bool lose_host_of(int server);

  /// Has the standby take over from a server that goes on.
  void take_over(int server);
  void close_listeners_of(int server);

  /// From now on nobody answers servers.
  void stop_supervisor();

  /// Kills a process and starts it again, as its supervisor would: a server with its memory.
  void restart_server(int server);
  void restart_standby(int server);
  void stop_standby(int server);
  void continue_standby(int server);

  /// The status as of waitpid.
  int wait_for_server(int server);
  int wait_for_standby(int server);

 private:
  struct Process {
    ClusterTask task = {};
    bool standby = false;
    remote::TaskListeners listeners = {};
    watch::Fd line = {};
    pid_t pid = -1;
  };
  struct Server {
    Process primary = {};
    Process standby = {};
    bool complete = false;
    bool taken_over = false;
  };

  [[nodiscard]] remote::TaskPlace place_of(const Process& process) const;
  void start(Process& process);
  void kill(Process& process);
  void listen();
  void hear(Server& server);

  std::string secret_;
  std::vector<remote::Address> addresses_;
  std::vector<Process> tasks_;  ///< the chief and the workers
  std::vector<Server> servers_;
  std::mutex mutex_;
  std::condition_variable heard_;
  bool over_ = false;
  bool stopped_ = false;
  std::thread supervisor_;
};

}  // namespace cohort::test
