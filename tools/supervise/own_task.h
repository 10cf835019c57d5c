// The tasks on this supervisor's host, and their processes. Each process is in a process group of its own:
// what it starts itself ends with it. It ends, too, when the supervisor does, in whatever way.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include <cohort/remote/task_place.h>

#include "cluster/sockets.h"
#include "hosts.h"
#include "job.h"

namespace cohort::supervise {

/// What a task's process runs.
struct Command {
  std::vector<std::string> words = {};      ///< the program and its arguments
  std::vector<std::string> variables = {};  ///< the environment, as `NAME=value`
};

/// The caller's environment; without what a launcher has set for the caller's own process, if there is one: a
/// task that used MPI would take itself for that.
[[nodiscard]] std::vector<std::string> variables_of_tasks(bool has_launcher);

/// Starts a task's process. It inherits the descriptors of `place`, a card that says the place, standard
/// output and error, and, if it `reads_input`, standard input. Call it on the main thread, whose end would
/// end the process.
/// @throws InvalidArgument when there is no such program, or it cannot be executed; Unavailable when the
/// system has no process or memory for it.
[[nodiscard]] pid_t start_process(const Command& command, const remote::TaskPlace& place, bool reads_input);

/// A task that runs on this supervisor's host, or a standby of one: its process, which may be started again,
/// and the line to it, if it has one. What the process was given stays the supervisor's.
class OwnTask {
 public:
  /// `host` is this one, for messages. A server that has a standby has a line, and so has a standby.
  OwnTask(remote::TaskPlace place, std::string host, bool has_line);

  [[nodiscard]] const ClusterTask& task() const noexcept { return place_.task; }
  [[nodiscard]] bool is_standby() const noexcept { return place_.standby; }
  [[nodiscard]] int restarts() const noexcept { return place_.restarts; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool runs() const noexcept { return pid_ != 0; }

  /// For example `worker 1 (host n1, pid 4711)`, `the standby of ps 0 (host n1, pid 4712)`.
  [[nodiscard]] std::string describe() const;

  /// Errors are those of start_process.
  void start(const Command& command, bool reads_input);
  void start_again(const Command& command, bool reads_input);

  /// To the process and all that it has started.
  void signal(int signal) const;

  /// The process has ended, and was waited for.
  void has_ended() noexcept { pid_ = 0; }

  /// Adds the line, if there is one, to what to wait for before the next `hear`.
  void add_to(std::vector<pollfd>& polled) const;

  /// What the process has said, for the supervisor that leads.
  [[nodiscard]] std::vector<ServerWord> hear();

  /// Passes that supervisor's word on; but no answer that comes after the process has said something else, or
  /// is another one.
  void pass_on(const ServerWord& word);

  /// From now on it is the task itself. Its process is told, if there is one.
  void take_over();

 private:
  remote::TaskPlace place_;
  std::string host_;
  bool has_line_;
  watch::Fd line_ = {};     ///< this end of the last process's
  std::uint64_t said_ = 0;  ///< counts processes and what they have said
  pid_t pid_ = 0;
};

}  // namespace cohort::supervise
