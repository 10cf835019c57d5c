// Processes of one node hand each other a file descriptor, over local sockets whose
// names and keys travel through the bootstrap. That a descriptor arrives is also the
// proof that two workers are on the same node: host names prove nothing.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// Every worker's blob, by rank; called by every worker alike.
using BlobExchange = std::function<std::vector<std::string>(std::string_view)>;

struct DescriptorExchangeOptions {
  int rank = 0;
  std::vector<int> peers;  ///< ranks of the others that may be on this node
  BlobExchange exchange;
  std::chrono::milliseconds limit{5000};  ///< for all peers to be heard of
};

/// Collective over all workers. Calls `received` once for each peer whose descriptor arrived; the
/// descriptor is closed when it returns. Returns the peers that stayed silent.
[[nodiscard]] std::vector<int> exchange_descriptors(
    const DescriptorExchangeOptions& options, int descriptor,
    const std::function<void(int peer, int descriptor)>& received);

}  // namespace cohort
