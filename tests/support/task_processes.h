// The tasks of a cluster as processes: forked children run `serve`, and the test itself is the chief.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <cohort/coordinator/serve.h>
#include <cohort/remote/local_cluster.h>

namespace cohort::test {

class TaskProcesses {
 public:
  using Main = std::function<void(const remote::TaskPlace&)>;

  static void serve_task(const remote::TaskPlace& place) {
    static_cast<void>(serve(ParameterServerStrategy(place)));
  }

  /// Starts `workers` and `servers` processes; `main` is what a worker does.
  TaskProcesses(int workers, int servers, Main main = serve_task)
      : cluster_({{"chief", 1}, {"worker", workers}, {"ps", servers}}), worker_main_(std::move(main)) {
    for (int i = 0; i < servers; ++i) start({"ps", i});
    for (int i = 0; i < workers; ++i) start({"worker", i});
  }
  ~TaskProcesses() {
    for (const auto& [name, pid] : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  TaskProcesses(const TaskProcesses&) = delete;
  TaskProcesses& operator=(const TaskProcesses&) = delete;

  [[nodiscard]] const remote::TaskPlace& chief() const { return cluster_.place({"chief", 0}); }

  void start(const ClusterTask& task) {
    const pid_t pid = ::fork();
    if (pid != 0) {
      pids_[remote::name_of(task)] = pid;
      return;
    }
    int status = EXIT_SUCCESS;
    try {
      (task.type == "worker" ? worker_main_ : Main(serve_task))(cluster_.place(task));
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}: {}\n", remote::name_of(task), error.what());
      status = EXIT_FAILURE;
    }
    ::_exit(status);
  }

  void kill(const ClusterTask& task, int signal = SIGKILL) { ::kill(pids_.at(remote::name_of(task)), signal); }

  /// Waits for its end; the status of waitpid.
  int wait(const ClusterTask& task) {
    const auto place = pids_.find(remote::name_of(task));
    int status = 0;
    ::waitpid(place->second, &status, 0);
    pids_.erase(place);
    return status;
  }

 private:
  remote::LocalCluster cluster_;
  Main worker_main_;
  std::map<std::string, pid_t> pids_;
};

}  // namespace cohort::test
