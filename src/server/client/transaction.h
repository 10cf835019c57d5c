// The writes of one execution: they are kept until the function has ended, and then made all at once. There
// is at most one in a task at a time, shared by the threads of its replicas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "connections.h"
#include "server/serving/protocol.h"
#include "server/serving/write.h"

namespace cohort::server {

struct WritesToSend {
  int server = 0;
  MessageKind kind = MessageKind::kCommit;
  const CommitMessage* message = nullptr;
};

/// Sends the writes of executions to servers and waits until they are taken.
/// Servers of this node read large values where they lie, if the system permits it.
/// Returns what each answers beside: how old its gradients were. @throws what the servers answer, and as
/// Connections::ask.
std::vector<std::vector<std::byte>> send_writes(Connections& connections,
                                                const std::vector<WritesToSend>& all);

class Transaction {
 public:
  /// Keeps a copy of the write.
  void add(int server, Write write);

  /// The writes to one variable up to now, in their order.
  [[nodiscard]] std::vector<Write> writes_to(int server, VariableIndex variable) const;

  /// Makes the writes: at one server by one message; at several, all prepare theirs before the first of them
  /// commits, which decides for all. `result` is remembered with the commit. Nothing happens without writes.
  /// @throws what a server answers, before anything is made; Aborted if this task was taken for lost;
  /// Unavailable naming a server that has not made its part of what was decided, with its variables.
  void commit(Connections& connections, const Execution& execution, std::uint64_t forget,
              std::span<const std::byte> result) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, std::vector<Write>> writes_;  ///< by server
};

}  // namespace cohort::server
