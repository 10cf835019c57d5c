// Sends a message whose body may be large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <cohort/remote/endpoint.h>

#include "rpc/protocol.h"

namespace cohort::rpc {

/// `head`, and `body` after it, which is not copied where that costs more than to keep it.
void send_body(remote::Peer& peer, RpcMessage kind, std::uint64_t number, std::span<const std::byte> head,
               std::vector<std::byte> body);

}  // namespace cohort::rpc
