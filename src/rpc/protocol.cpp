#include "protocol.h"

#include <array>
#include <memory>
#include <utility>

#include <cohort/rpc/detail/codec.h>

namespace cohort::rpc {
namespace {

/// From this size on, a body is lent to the endpoint, which would copy what does not fit at once.
constexpr std::size_t kLentBytes = std::size_t{64} << 10;

/// 0 for none: incarnations are drawn at random from 64 bits.
thread_local std::uint64_t running_for = 0;

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

std::vector<std::byte> to_bytes(const Error& error) {
  Encoder encoder;
  encoder.number(error.code());
  encoder.text(error.what());
  return encoder.take();
}

Error parse_failure(std::span<const std::byte> bytes) {
  try {
    Decoder decoder(bytes);
    const auto code = decoder.number<ErrorCode>();
    if (code >= ErrorCode::kInvalidArgument && code <= ErrorCode::kInternal)
      return {code, std::string(decoder.text())};
    return DataLoss("another task answered with an error of an unknown kind, {}", static_cast<int>(code));
  } catch (const DataLoss& damaged) {
    return damaged;
  }
}

RunningMethod::RunningMethod(std::uint64_t incarnation) noexcept { running_for = incarnation; }
RunningMethod::~RunningMethod() { running_for = 0; }

bool is_running_method_of(std::uint64_t incarnation) noexcept { return running_for == incarnation; }

}  // namespace cohort::rpc
