// What an algorithm's messages must fulfil, on a node and between nodes.
#pragma once

#include <cohort/base/error.h>
#include <cohort/collective/algorithm.h>

namespace cohort {

/// @throws InvalidArgument for a member or a tag that does not exist.
inline void require_legal_message(const Peers& peers, int other, int tag) {
  if (other < 0 || other >= peers.size() || other == peers.rank()) {
    throw InvalidArgument("an algorithm's message from or to member {}: the others of member {} are 0 to {}",
                          other, peers.rank(), peers.size() - 1);
  }
  if (tag < 0 || tag > Peers::kLargestTag)
    throw InvalidArgument("an algorithm's message has tag {}; tags are 0 to {}", tag, Peers::kLargestTag);
}

}  // namespace cohort
