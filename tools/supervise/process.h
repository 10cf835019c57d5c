// The process of a task, in a process group of its own: what it starts itself ends with it. It ends, too,
// when the supervisor does, in whatever way.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <cohort/remote/task_place.h>

namespace cohort::supervise {

struct Command {
  std::vector<std::string> words = {};      ///< the program and its arguments
  std::vector<std::string> variables = {};  ///< the environment, as `NAME=value`
};

/// The caller's environment, without what a launcher of MPI has set for the caller's own process: a task that
/// used MPI would take itself for that.
[[nodiscard]] std::vector<std::string> variables_of_tasks();

/// Starts a task's process. It inherits the descriptors of `place`, a card that says the place, standard
/// output and error, and, if it `reads_input`, standard input. Call it on the main thread, whose end would
/// end the process.
/// @throws InvalidArgument when there is no such program, or it cannot be executed; Unavailable when the
/// system has no process or memory for it.
[[nodiscard]] pid_t start_process(const Command& command, const remote::TaskPlace& place, bool reads_input);

}  // namespace cohort::supervise
