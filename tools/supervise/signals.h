// The signals that a supervisor acts on, instead of being ended by them: those that it passes on to its
// tasks, and the news that one of these has ended. They are blocked for as long as this lives, also in
// threads that are started meanwhile.
#pragma once

#include <poll.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <vector>

#include "cluster/fd.h"

namespace cohort::supervise {

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

}  // namespace cohort::supervise
