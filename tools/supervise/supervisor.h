// Starts the tasks of one host, starts killed ones again, passes signals on, and ends all of them when the
// job is over. Owns what outlives their processes. One thread, the main one, makes and runs it.
#pragma once

#include <poll.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/sockets.h"
#include "hosts.h"
#include "job.h"
#include "own_task.h"

namespace cohort::supervise {

/// What a supervisor has to say about its tasks: writes `cohort-supervise: TEXT` to standard error as one
/// line, in one piece.
void say(std::string_view text);

/// The signals that a supervisor acts on, instead of being ended by them: those that it passes on to its
/// tasks, and the news that one of these has ended. They are blocked for as long as this lives, also in
/// threads that are started meanwhile.
class Signals {
 public:
  /// @throws Unavailable when the system refuses.
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Those that have come, each once; waits for one of them, or for what `others` name, until the time is
  /// over, if there is one.
  [[nodiscard]] std::vector<int> wait(std::optional<std::chrono::milliseconds> limit,
                                      std::vector<pollfd> others);

 private:
  sigset_t before_{};
  watch::Fd queue_;
};

/// Whether it asks a program to end.
[[nodiscard]] constexpr bool asks_to_end(int signal) noexcept {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

struct SupervisorOptions {
  Command command = {};
  std::vector<ClusterTask> tasks = {};             ///< of the job
  int restarts = 0;                                ///< of each task
  std::chrono::milliseconds until_servers{5000};   ///< for parameter servers to end by themselves
  std::chrono::milliseconds until_killed{3000};    ///< from SIGTERM to SIGKILL
  std::chrono::milliseconds until_notice{10'000};  ///< from the chief's end to a line about who still runs
};

class Supervisor final : private HostEvents {
 public:
  /// @throws Unavailable when another supervisor does not come.
  Supervisor(SupervisorOptions options, Team team);
  ~Supervisor() override;
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Returns the status that this supervisor ends with, once all its tasks have ended: the job's on the first
  /// host, 0 on others. @throws InvalidArgument when the program cannot be started.
  [[nodiscard]] int run();

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool leads() const noexcept { return team_.host == 0; }
  [[nodiscard]] bool is_done() const;
  [[nodiscard]] std::optional<std::chrono::milliseconds> until_next_action() const;
  void add(const remote::TaskListeners& listeners, bool standby);
  [[nodiscard]] std::size_t index_of(const ClusterTask& task) const;
  [[nodiscard]] std::vector<int> wait();
  [[nodiscard]] bool reads_input(const OwnTask& task) const { return task.task() == job_.chief(); }
  void reap();
  void on_own_end(OwnTask& task, const Ending& ending);
  void hear_servers();
  void tell(int host, const ServerWord& word);
  [[nodiscard]] OwnTask& own_task(const ClusterTask& task);
  void take_over(OwnTask& task);
  void stop_listening_for(const ClusterTask& task);
  void settle(int host, const ClusterTask& task, const Ending& ending);
  [[nodiscard]] bool goes_on_elsewhere(std::size_t task);
  void enter(Phase phase);
  void pass_on(int signal);
  void signal_all(int signal);
  void act_in_time();
  void name_stragglers();
  [[nodiscard]] std::string losses_with(int host) const;
  [[nodiscard]] std::string what_becomes_of(std::size_t server) const;

  void on_task_end(int host, const ClusterTask& task, const Ending& ending) override;
  void on_phase(Phase phase) override;
  void on_server_word(int host, const ServerWord& word) override;
  void on_host_lost(int host, const std::string& why) override;

  SupervisorOptions options_;
  Team team_;
  Signals signals_;  // before the thread that comes with `others_`
  Job job_;
  Standbys standbys_;              ///< of the leader alone
  std::unique_ptr<Hosts> others_;  ///< null where there is one host
  std::vector<OwnTask> own_;
  Phase phase_ = Phase::kRunning;
  bool interrupted_ = false;  ///< a signal has asked the tasks to end
  bool leader_is_lost_ = false;
  std::optional<Clock::time_point> terminate_at_;
  std::optional<Clock::time_point> kill_at_;
  std::optional<Clock::time_point> notice_at_;
};

}  // namespace cohort::supervise
