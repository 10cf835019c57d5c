// A task as its supervisor starts it: the listeners and the memory that its process takes over, and that stay
// when the process ends; the card that tells it its place; and the line by which a parameter server and its
// supervisor talk.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/cluster/cluster_roles.h>
#include <cohort/remote/endpoint.h>
#include <cohort/remote/task_place.h>

#include "cluster/sockets.h"

namespace cohort::remote {

/// What messages call a task: `worker 1`.
[[nodiscard]] std::string name_of(const ClusterTask& task);

/// On which of the network interfaces a task listens.
enum class Interfaces { kLoopback, kAll };

/// What a process takes over when it becomes the task.
struct TaskListeners {
  Address address;
  watch::Fd network;
  watch::Fd local;
  watch::Fd memory;  ///< of a `ps` alone
};

/// Listens for a task: with `kLoopback` out of reach for other hosts. Descriptors close on exec.
/// @throws Unavailable when the system refuses.
[[nodiscard]] TaskListeners listen_for(const ClusterTask& task, Interfaces interfaces);

/// The secret of a new job.
[[nodiscard]] std::string random_secret();

/// The card of a task: its TaskPlace as JSON.
[[nodiscard]] std::string to_card(const TaskPlace& place);

/// The card in a memory file, which the task's process inherits. Nobody else can read it there, as everyone
/// could a variable or an argument. @throws Unavailable.
[[nodiscard]] watch::Fd card_file(const TaskPlace& place);

/// @throws InvalidArgument saying what is wrong with the text, and where.
[[nodiscard]] TaskPlace place_from_card(std::string_view card);

/// The part of the card about where tasks listen, which supervisors of several hosts tell each other.
[[nodiscard]] std::string addresses_to_json(std::span<const Address> addresses);
[[nodiscard]] std::vector<Address> addresses_from_json(std::string_view text);

// What a parameter server on one of several hosts and its supervisor tell each other: single words over a
// pair of sockets, of which each has one end. Supervisors know which hosts are lost, and so decide whether
// a server's variables go on from the server or from its standby, never from both.
//
//     server  kAlone     ->  supervisor     it has no standby, or has lost it: may it commit without?
//     server  <-  kGranted                  it may: from now on the standby does not take over
//     server  kCopied    ->                 the standby has all that was committed: from now on it may
//     standby <-  kTakeOver                 the server's host is lost

enum class SupervisorWord : std::uint8_t { kAlone = 1, kGranted, kCopied, kTakeOver };

/// One end. It does not own the descriptor, which outlives it, and never waits.
class SupervisorLine {
 public:
  explicit SupervisorLine(int descriptor) noexcept : descriptor_(descriptor) {}

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  /// To an end that is closed a word is lost.
  /// @throws Unavailable when the other end has read none of very many words.
  void send(SupervisorWord word) const;

  /// The next word, or nothing if there is none now.
  [[nodiscard]] std::optional<SupervisorWord> receive() const;

 private:
  int descriptor_;
};

/// Both ends of a new line, closed on exec. @throws Unavailable when the system refuses.
[[nodiscard]] std::pair<watch::Fd, watch::Fd> make_supervisor_line();

}  // namespace cohort::remote
