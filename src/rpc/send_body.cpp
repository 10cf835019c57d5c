#include "rpc/send_body.h"

#include <array>
#include <memory>
#include <utility>

namespace cohort::rpc {
namespace {

/// From this size on, a body is lent to the endpoint, which would copy what does not fit at once.
constexpr std::size_t kLentBytes = std::size_t{64} << 10;

}  // namespace

void send_body(remote::Peer& peer, RpcMessage kind, std::uint64_t number, std::span<const std::byte> head,
               std::vector<std::byte> body) {
  if (body.size() < kLentBytes) {
    const std::array<std::span<const std::byte>, 2> parts{head, body};
    return peer.send(to_number(kind), number, parts);
  }
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(body));
  peer.send_shared(to_number(kind), number, head, *owner, owner);
}

}  // namespace cohort::rpc
