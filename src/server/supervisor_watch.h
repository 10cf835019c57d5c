// Hears what a supervisor says to this server, while the server does something else.
#pragma once

#include <functional>
#include <thread>

#include "cluster/fd.h"
#include "remote/supervisor_line.h"

namespace cohort::server {

class SupervisorWatch {
 public:
  /// Calls `heard` for each word, on a thread of its own, until the line ends. The line outlives it.
  /// @throws Unavailable when the system refuses.
  SupervisorWatch(remote::SupervisorLine line, std::function<void(remote::SupervisorWord)> heard);
  ~SupervisorWatch();
  SupervisorWatch(const SupervisorWatch&) = delete;
  SupervisorWatch& operator=(const SupervisorWatch&) = delete;

 private:
  void listen();

  remote::SupervisorLine line_;
  std::function<void(remote::SupervisorWord)> heard_;
  watch::Fd stop_;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace cohort::server
