#include "server/value_in_peer.h"

namespace cohort::server {
namespace {

/// Below that the message is quicker than the system call.
constexpr std::size_t kWorthReading = std::size_t{16} << 10;

}  // namespace

bool ValueInPeer::is_worth_it(const Tensor& value) noexcept {
  return is_cpu(value.device()) && value.raw().size() >= kWorthReading;
}

void ValueInPeer::encode(Encoder& encoder, const Tensor& value) {
  encoder.number(value.dtype());
  encoder.shape(value.shape());
  encoder.number(reinterpret_cast<std::uint64_t>(value.raw().data()));
}

ValueInPeer::ValueInPeer(remote::Peer& peer, Decoder& decoder)
    : peer_(&peer),
      dtype_(decoder.dtype()),
      shape_(decoder.shape()),
      address_(decoder.number<std::uint64_t>()) {}

void ValueInPeer::read(std::size_t at, std::span<std::byte> to) const {
  if (!peer_->read_memory(address_ + at, to)) throw OutOfReach();
}

Tensor ValueInPeer::read() const {
  Tensor result = Tensor::uninitialized(shape_, dtype_);
  read(0, result.raw());
  return result;
}

}  // namespace cohort::server
