// Sends the writes of executions to servers and waits until they are taken.
#pragma once

#include <cstddef>
#include <vector>

#include "server/commit_message.h"
#include "server/connections.h"

namespace cohort::server {

struct WritesToSend {
  int server = 0;
  MessageKind kind = MessageKind::kCommit;
  const CommitMessage* message = nullptr;
};

/// Servers of this node read large values where they lie, if the system permits it.
/// Returns what the servers answered: of a commit, how old its gradients were.
/// @throws what the servers answer, and as Connections::ask.
std::vector<std::vector<std::byte>> send_writes(Connections& connections,
                                                const std::vector<WritesToSend>& all);

}  // namespace cohort::server
