// The processes that descend from this one, in whatever session or namespace, and what keeps each of their
// threads: what the log of a test that hangs must say. For a program that ends soon: explaining the tree
// stops it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace cohort::testing {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';  // as in /proc/PID/stat
  int threads = 0;
  double age_seconds = 0;
  std::string command;
};

/// The descendants of the calling process, parents before children.
[[nodiscard]] std::vector<Process> descendants();

/// A line per process.
void print(const std::vector<Process>& processes);

/// Prints the stacks of all their threads, by gdb. Where gdb is not installed or does not get in, the calls
/// of the system that the threads are in. Leaves the processes stopped.
void explain(const std::vector<Process>& processes);

/// Ends all descendants: asks them to, so that they remove their temporary files, and kills those that are
/// left after `patience`. Those that even then live on are returned.
std::vector<Process> end_descendants(std::chrono::seconds patience);

/// Whether all descendants have ended within `patience`. Their parent must have made itself the one that
/// inherits orphans, with SIGCHLD blocked.
[[nodiscard]] bool have_ended_within(std::chrono::milliseconds patience);

}  // namespace cohort::testing
