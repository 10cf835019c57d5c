// What this process has sent over TCP, MPI's connections included, and the network has not taken yet: on a
// host with a slow link that is much all the time, while the others wait for it. Linux' table of all
// connections would tell the same of the whole host, and takes milliseconds to read.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace cohort {

class SendQueues {
 public:
  /// In the send queues of the connections to other hosts.
  [[nodiscard]] std::uint64_t bytes();

 private:
  void find_connections();

  std::vector<int> connections_;  ///< descriptors, which others may close meanwhile
  std::chrono::steady_clock::time_point found_at_;
};

}  // namespace cohort
