// The start of a Session: the workers find the first of them through the store, connect to it, and tell each
// other who they are and what they must agree on.
//
// The store gets one key, where the first listens and the secret by which connections prove that they belong
// to the session; it is removed once all have connected. If a worker gives up, it leaves word there for those
// that have no connection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <cohort/cluster/worker.h>
#include <cohort/remote/endpoint.h>
#include <cohort/rendezvous/session.h>

#include "group_exchange.h"
#include "links.h"

namespace cohort::rendezvous {

/// What the start comes to.
struct Started {
  std::vector<WorkerInfo> workers = {};         ///< by rank
  std::vector<remote::Address> addresses = {};  ///< where they listen, by rank
  std::shared_ptr<Links> links = {};
  std::shared_ptr<GroupExchange> exchange = {};  ///< of all workers
};

/// The name of the group of all workers.
inline constexpr const char* kEveryone = "";

/// Collective over all workers. `fault` as in GroupExchangeOptions. @throws as the constructor of Session.
[[nodiscard]] Started start(const SessionOptions& options, std::function<const Error*()> fault);

}  // namespace cohort::rendezvous
