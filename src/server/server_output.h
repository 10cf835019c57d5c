// Where what a server does is heard of by others: those who asked for it, and whoever keeps a copy of its
// variables and must know of a change before they do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <cohort/remote/endpoint.h>

#include "server/protocol.h"

namespace cohort::server {

class ServerOutput {
 public:
  virtual ~ServerOutput() = default;

  /// Whether the requests that `changed` gets must have all values in them.
  [[nodiscard]] virtual bool wants_values() const noexcept = 0;

  /// A request was carried out that changed what the server keeps. Its answer comes after.
  virtual void changed(MessageKind kind, std::span<const std::byte> body) = 0;

  /// The answer to a request that may change something, kReply or kFailure.
  virtual void answer(remote::Peer& peer, MessageKind kind, std::uint64_t number,
                      std::span<const std::byte> body) = 0;
};

}  // namespace cohort::server
