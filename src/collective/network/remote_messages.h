// Send and receive between members of different nodes. A message begins with a label that
// says what it holds. Short contents travel with the label; long ones follow in pieces
// once the receiver is there.
//
// An error of a message, also a late one, ends that message alone.
#pragma once

#include <cstdint>
#include <map>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/communicator.h>
#include <cohort/collective/task.h>

#include "wire.h"

namespace cohort::network {

class RemoteMessages {
 public:
  /// `generation` is that of the communicator's group.
  RemoteMessages(Wire& wire, int rank, const std::vector<MemberInfo>& members, std::uint64_t generation)
      : wire_(wire), rank_(rank), members_(members), generation_(generation) {}

  /// `call` must outlive them.
  [[nodiscard]] Task<> send(const CollectiveCall& call);
  [[nodiscard]] Task<> receive(const CollectiveCall& call);

  /// The call has failed; cancels a receive for which nothing has arrived.
  void withdraw(const CollectiveCall& call);

 private:
  Wire& wire_;
  int rank_;
  const std::vector<MemberInfo>& members_;
  std::uint64_t generation_;
  std::map<const CollectiveCall*, Transfer*> awaited_;  ///< first messages of receives
};

}  // namespace cohort::network
