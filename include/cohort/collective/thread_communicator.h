// Communicators whose members are threads of one process: those of a node,
// for a process alone. Replicas of one worker use them, and so do tests of code written
// against Communicator, under the sanitizers and without MPI.
#pragma once

#include <memory>
#include <vector>

#include <cohort/collective/communicator.h>

namespace cohort {

/// One communicator per member, by rank; hand each to its own thread. The group ends with its last
/// communicator.
/// @throws InvalidArgument for less than one member.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_thread_communicators(
    int members, const CommunicationOptions& options = {});

}  // namespace cohort
