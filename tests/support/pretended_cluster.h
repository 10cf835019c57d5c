// A cluster within one process: workers are threads that are as separate as processes, on any nodes that a
// test wants. Members are threads of theirs.
//
// Workers of one node meet in the node heap, which each of them has mapped once more.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <cohort/collective/communicator.h>

namespace cohort::testing {

struct Placement {
  std::vector<int> node_of_worker;  ///< nodes are numbered from 0
  int members = 1;                  ///< of each worker
};

/// For example `0-1-0-1x2`: two workers on either node in turns, two members each.
[[nodiscard]] std::string to_string(const Placement& placement);

/// Runs `function` once per member, each on a thread of its own, on a communicator over all.
void for_each_member(const Placement& placement, const std::function<void(Communicator&)>& function,
                     const CommunicationOptions& options = {});

}  // namespace cohort::testing
