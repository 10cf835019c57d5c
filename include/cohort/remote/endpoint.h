// An Endpoint is a task's place in a network of tasks that may end and come back: it listens, connects to
// other tasks, and carries messages both ways, through shared memory between processes of one node and over
// TCP between nodes. It knows nothing of MPI: the loss of a peer ends that peer's messages and nothing else.
//
// A message has a kind, a number and a body, whose meaning is up to the protocol above. Messages of one peer
// arrive once and in their order, for as long as the peer is not lost. Both ends prove that they know the
// job's secret before a message is sent or believed; the messages themselves are not encrypted.
//
// Everything happens inside `poll` and `wait_until`: there the handler is called, tasks that connect are let
// in, and what did not fit before is sent. A thread of the endpoint's own only gives signs of life, so that a
// task may compute for long without being taken for lost. Not thread-safe otherwise: its owner serialises
// calls. In a process that was forked from its owner an endpoint is of no use, and does nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/cluster/cluster_roles.h>

namespace cohort::remote {

/// Where a task listens, and on which host: what others need to connect to it.
struct Address {
  ClusterTask task = {};
  std::string host = {};                  ///< its name, for messages
  std::vector<std::string> network = {};  ///< numeric `address:port`, IPv6 in brackets; empty: not over TCP
  std::string local = {};                 ///< name of an abstract local socket; empty: not on the node

  friend bool operator==(const Address&, const Address&) = default;
};

struct Message {
  std::uint16_t kind = 0;
  std::uint64_t number = 0;
  std::span<const std::byte> body = {};  ///< valid until the handler returns
};

/// The other end of a connection. Lives as long as its Endpoint, also after it is lost.
class Peer {
 public:
  virtual ~Peer() = default;

  [[nodiscard]] virtual const ClusterTask& task() const noexcept = 0;

  /// Drawn at random when the peer's process started: one that came back has another.
  [[nodiscard]] virtual std::uint64_t incarnation() const noexcept = 0;

  /// For example `worker 1 (host n1, pid 4711)`.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;

  /// Whether messages go through memory that both processes share.
  [[nodiscard]] virtual bool on_this_node() const noexcept = 0;

  [[nodiscard]] virtual bool lost() const noexcept = 0;

  /// The descriptor that the peer offers to processes of its node (EndpointOptions::offered); -1: none.
  /// Closed with the peer.
  [[nodiscard]] virtual int offered_descriptor() const noexcept = 0;

  /// Sends a message whose body is `parts`, one after the other. Never waits: what does not fit is kept, and
  /// goes out in later calls of `poll`. A lost peer gets nothing, and when the endpoint ends, what is kept is
  /// dropped.
  virtual void send(std::uint16_t kind, std::uint64_t number,
                    std::span<const std::span<const std::byte>> parts) = 0;
  void send(std::uint16_t kind, std::uint64_t number, std::span<const std::byte> body = {}) {
    send(kind, number, {&body, 1});
  }

  /// The same without a copy of `large`, which follows `head` in the body: `owner` keeps it alive, and it
  /// does not change, until it is sent.
  virtual void send_shared(std::uint16_t kind, std::uint64_t number, std::span<const std::byte> head,
                           std::span<const std::byte> large, std::shared_ptr<const void> owner) = 0;

  /// Bytes that are kept because they did not fit: who sends much waits until they are few.
  [[nodiscard]] virtual std::size_t backlog() const noexcept = 0;

  /// Whether the peer has not closed the connection, as far as this node knows. A peer that lends its memory
  /// until it is answered may change it once it has given the connection up.
  [[nodiscard]] virtual bool is_open() const noexcept = 0;

  /// Copies from `address` in the peer's process. False where the peer is on another node or gone or has
  /// closed the connection, the system does not permit it, or that is not its memory: then bytes must travel
  /// in messages.
  [[nodiscard]] virtual bool read_memory(std::uint64_t address, std::span<std::byte> destination) = 0;
};

/// What the protocol above does with what arrives. Called inside `poll` and `wait_until` alone, and may send
/// and connect there; what it throws comes out of these.
class Handler {
 public:
  virtual ~Handler() = default;

  /// A task has connected to this one, or was connected to. Messages come after it.
  virtual void on_connected(Peer& peer) = 0;
  virtual void on_message(Peer& peer, const Message& message) = 0;

  /// The peer has ended, was silent for too long, or cannot be reached: `error` is Unavailable and names it.
  /// All messages that arrived before were handed over.
  virtual void on_lost(Peer& peer, const Error& error) = 0;

  /// Where the last `large_bytes` bytes of a body that is arriving go, once its first bytes, `head`, are
  /// there: a tensor's memory, so that they are not copied again. Asked for what `send_shared` sends with
  /// 256 KiB and more in `large`, and not more than 32 KiB in `head`. The memory is left alone until the
  /// message is handed over, whose body is then `head` alone, or the peer is lost. Nothing: the body arrives
  /// as a whole.
  [[nodiscard]] virtual std::span<std::byte> destination(Peer& /*peer*/, std::uint16_t /*kind*/,
                                                         std::uint64_t /*number*/,
                                                         std::span<const std::byte> /*head*/,
                                                         std::size_t /*large_bytes*/) {
    return {};
  }
};

struct EndpointOptions {
  ClusterTask task = {};
  std::string secret = {};         ///< of the job, at least 16 bytes that others cannot guess
  int network_listener = -1;       ///< a listening TCP socket, closed by the endpoint; -1: makes one
  int local_listener = -1;         ///< likewise an abstract local one; unused if `over_network_only`
  int offered = -1;                ///< a descriptor for peers of this node, duplicated
  bool over_network_only = false;  ///< treat peers of this node as if they were elsewhere; for tests
  std::chrono::milliseconds heartbeat{1000};

  /// After which a peer counts as lost, but at least two of its own heartbeats; 0: never. Time in which the
  /// owner does not poll hardly counts.
  std::chrono::milliseconds silence{5000};
};

class Endpoint {
 public:
  /// @throws Unavailable when it cannot listen, InvalidArgument for a secret that is too short, listeners
  /// that are none, and a silence that is not twice the heartbeat. `handler` outlives the endpoint.
  Endpoint(EndpointOptions options, Handler& handler);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] const Address& address() const noexcept;
  [[nodiscard]] std::uint64_t incarnation() const noexcept;

  /// Connects, through shared memory if `address` is on this node. A task that does not listen yet, or
  /// is being started again, is tried until the deadline; meanwhile other tasks are let in, but no messages
  /// are handed over. Each call makes a connection of its own, of which the handler is told in the next poll.
  /// @throws Unavailable naming job, index and host, and what kept it from answering; InvalidArgument when
  /// a task of another job or another task of the job answers, or none of Cohort.
  Peer& connect(const Address& address, Deadline deadline);

  /// Hands over what has arrived, without waiting. Returns the number of messages.
  /// @throws WrongContext when the handler calls it.
  int poll();

  /// Polls until `condition()` or the deadline; true if the condition came first. Polls for some 50 us, with
  /// yields, and then sleeps until something arrives. The condition changes in the handler, by a peer's
  /// backlog that becomes less, or by `wake`.
  template <class Condition>
  bool wait_until(Condition condition, Deadline deadline = Deadline::never()) {
    while (!condition()) {
      if (!wait(deadline)) return condition();
    }
    return true;
  }

  /// Ends the sleep of a thread in `wait_until`, so that it looks at its condition. Any thread may call it.
  void wake() noexcept;

 private:
  [[nodiscard]] bool wait(
      Deadline deadline);  ///< until something arrived; false when the deadline has passed

  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::remote
