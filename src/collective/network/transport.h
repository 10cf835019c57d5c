// A Transport carries messages between members of one communicator that are on different
// nodes. It never waits: a send or a receive is started, and polled until it has
// completed. MPI implements it, and so do TCP connections for clusters without it; tests
// have one between threads.
//
// Messages between two members with the same channel and tag arrive in the order in
// which they were sent, and match receives in the order in which those were started.
// Memory belongs to the transport until the transfer has completed; one that never
// completes, since the other side has failed, keeps its memory for ever.
//
// One member has one Transport, and one thread at a time uses it, except for control messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>

#include "collective/call/split_exchange.h"
#include "collective/task/scratch_pool.h"

namespace cohort {

/// Collectives of the library below a transport, which a network may carry out itself.
class TransportCollectives {
 public:
  TransportCollectives() = default;
  virtual ~TransportCollectives() = default;
  TransportCollectives(const TransportCollectives&) = delete;
  TransportCollectives& operator=(const TransportCollectives&) = delete;

  /// Whether it can carry out such a call; the same on all members.
  [[nodiscard]] virtual bool is_legal(const CollectiveCall& call) const = 0;

  /// Whether it is expected to be faster than Cohort's own algorithms for a call to which each member
  /// contributes `bytes`; the same on all members.
  [[nodiscard]] virtual bool is_preferred(const CollectiveCall& call, std::size_t bytes) const = 0;

  /// This member's part, once all are known to make the same call; one call at a time, in the same order
  /// on all of them. `call` must outlive it.
  [[nodiscard]] virtual Task<> execute(const CollectiveCall& call) = 0;
};

class Transport {
 public:
  /// A transfer that was started.
  using Ticket = std::uint32_t;

  /// Collectives and messages of the user never match each other.
  enum class Channel : std::uint8_t { kCollective, kMessage };

  struct Address {
    Channel channel = Channel::kCollective;
    int member = 0;  ///< the other side, by rank
    int tag = 0;     ///< 0 to kLargestTag
  };
  static constexpr int kLargestTag = 32766;

  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] virtual Ticket send(const Address& to, std::span<const std::byte> data) = 0;

  /// The message may be shorter than `into`. One that is longer never completes the receive: who sent
  /// it has called something else, which comes to light elsewhere.
  [[nodiscard]] virtual Ticket receive(const Address& from, std::span<std::byte> into) = 0;

  /// Once the transfer has completed: its bytes, and the ticket is void. Moves all transfers on.
  [[nodiscard]] virtual std::optional<std::size_t> poll(Ticket ticket) = 0;

  /// Takes a receive back; the ticket is void. False if a message has arrived for it: then the receive goes
  /// on as if it had not been asked for.
  [[nodiscard]] virtual bool cancel(Ticket ticket) = 0;

  /// Sends a short control message, which needs no receive: for what the FailureDetector tells. Any thread
  /// may call it.
  virtual void send_control(int member, std::string_view text) = 0;

  /// The next control message that has arrived. Any thread may ask for it, one at a time.
  struct ControlMessage {
    int from = 0;
    std::string text;
  };
  [[nodiscard]] virtual std::optional<ControlMessage> receive_control() = 0;

  /// Longest message of a long collective; the same on all members. Longer ones may wait for a member that
  /// is busy elsewhere, shorter ones pay their fixed cost too often.
  [[nodiscard]] virtual std::size_t message_bytes() const noexcept { return std::size_t{56} << 10; }

  /// The context ids that this member has free for a group.
  [[nodiscard]] virtual ContextIdSet free_context_ids() const = 0;

  /// A transport among these members alone, numbered anew in this order; nothing that goes through one of
  /// the two is seen by the other, while both live. Local: each member calls it with the context id on which
  /// all of them have agreed.
  [[nodiscard]] virtual std::unique_ptr<Transport> split(std::span<const int> members,
                                                         const ContextId& id) = 0;

  /// Collectives among the members of this transport; null where the library has none for them.
  [[nodiscard]] virtual TransportCollectives* collectives() noexcept { return nullptr; }

  /// Where several members live on one thread: their scratch memory, which outlives their transports. Null:
  /// each member has its own.
  [[nodiscard]] virtual ScratchPool* shared_scratch_pool() noexcept { return nullptr; }

  /// Whether nothing reads or writes the memory of unfinished transfers once it is destroyed.
  [[nodiscard]] virtual bool ends_transfers() const noexcept { return false; }

  /// Whether any thread may use it, one at a time; otherwise only the one that made it.
  [[nodiscard]] virtual bool any_thread() const noexcept = 0;
};

}  // namespace cohort
