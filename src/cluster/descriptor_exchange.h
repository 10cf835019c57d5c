// Processes of one node pass each other a file descriptor, over local sockets whose names and secrets are
// exchanged through the bootstrap. A descriptor that arrives also proves that two workers are on the same
// node; equal host names do not.
//
// A descriptor opens this job's memory to whoever gets it. It is sent once the listener has turned out to be
// a process of this user and has proven that it belongs to the job: the name of a worker that has given up is
// free for anyone to take.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// Returns every worker's blob, by rank. Collective over all workers.
using BlobExchange = std::function<std::vector<std::string>(std::string_view)>;

struct DescriptorExchangeOptions {
  int rank = 0;
  std::vector<int> peers = {};  ///< ranks of the others that may be on this node
  BlobExchange exchange = {};
  std::chrono::milliseconds limit{5000};  ///< for the descriptors of all peers to arrive
};

/// Collective over all workers. Calls `received` once for each peer whose descriptor arrived; the descriptor
/// is closed when it returns. Returns the peers whose descriptors did not arrive.
[[nodiscard]] std::vector<int> exchange_descriptors(
    const DescriptorExchangeOptions& options, int descriptor,
    const std::function<void(int peer, int descriptor)>& received);

}  // namespace cohort
