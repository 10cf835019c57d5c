// Send and receive between members of different nodes. A message begins with a label that
// says what it holds. Short contents travel with the label; long ones follow in pieces
// once the receiver is there, and then a seal that says that the message is complete.
//
// A sender whose deadline passes seals its message as withdrawn: the receiver drops what has
// come of it and takes the next message. Until a seal says that it is complete, the sender may
// have given up, and its program may already have changed the tensor that the pieces come from.
//
// An error of a message, also a late one, ends that message alone, unless the message is on its
// way and cannot be taken back. Then it ends the communicator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/communicator.h>
#include <cohort/collective/task.h>

#include "../node/inter_node.h"
#include "lane.h"

namespace cohort::network {

class RemoteMessages {
 public:
  /// `generation` is that of the communicator's group.
  RemoteMessages(Wire& wire, int rank, const std::vector<MemberInfo>& members, std::uint64_t generation);
  ~RemoteMessages();

  RemoteMessages(const RemoteMessages&) = delete;
  RemoteMessages& operator=(const RemoteMessages&) = delete;

  /// `call` must outlive them.
  [[nodiscard]] Task<> send(const CollectiveCall& call);
  [[nodiscard]] Task<> receive(const CollectiveCall& call);

  /// `call`, which is pending, is late.
  [[nodiscard]] node::Withdrawal withdraw(const CollectiveCall& call);

 private:
  struct Label;
  struct Seal;

  /// How far a message has come that this member sends or receives.
  struct Progress {
    Transfer* transfer = nullptr;  ///< the one that is awaited
    bool may_withdraw = false;     ///< a receive awaits a label, or a send has not been sealed
    int arrivals = 0;              ///< how often the label was about to arrive when it was to be withdrawn
  };

  /// What is left of a send that was withdrawn.
  struct Leftover {
    std::shared_ptr<const Seal> seal;
    Transfer sealing;
    Transfer piece;  ///< the one that was pending
  };

  [[nodiscard]] Transport::Address address_of(const CollectiveCall& call) const;
  /// Whether the message, of `bytes`, came whole. Pieces are dropped if `into` is null.
  [[nodiscard]] Task<bool> receive_pieces(const CollectiveCall& call, std::byte* into, std::size_t bytes);
  void sweep_leftovers();

  Wire& wire_;
  int rank_;
  const std::vector<MemberInfo>& members_;
  std::uint64_t generation_;
  std::map<const CollectiveCall*, Progress> pending_;
  std::vector<Leftover> leftovers_;
};

}  // namespace cohort::network
