// Requests to a parameter server, as any task of the job could send them: the input is a list of requests,
// each with its kind (one byte), the size of its body (two bytes, little-endian) and the body. They go to one
// server that has variables, one after the other.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <cohort/base/error.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/sgd.h>

#include "fuzz_one.h"
#include "recording_peer.h"
#include "server/serving/parameter_server.h"
#include "server/store/store.h"

namespace cohort::fuzz {
namespace {

using server::MessageKind;
using server::ParameterServer;
using server::Store;

// Used, so that they are linked, and requests can name them.
const Sgd kSgd;
const Adam kAdam;

/// A body, aligned as the memory of messages is.
class Body {
 public:
  explicit Body(std::string_view bytes)
      : size_(bytes.size()),
        memory_(Tensor::uninitialized({static_cast<std::int64_t>(size_)}, DType::kUInt8)) {
    std::ranges::copy(std::as_bytes(std::span(bytes)), memory_.data());
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {memory_.data(), size_}; }

 private:
  std::size_t size_;
  Tensor memory_;
};

}  // namespace

void fuzz_one(std::string_view input) {
  constexpr std::size_t kHeadBytes = 3;
  Store store;
  store.create("0:table", {4, 2}, DType::kFloat32, 1);
  store.create("1:number", {}, DType::kInt64);
  ParameterServer server(store);
  test::RecordingPeer peer;
  for (std::uint64_t number = 1; input.size() >= kHeadBytes; ++number) {
    const auto at = [&](std::size_t place) { return static_cast<std::uint8_t>(input[place]); };
    const std::uint16_t kind = at(0);
    const std::size_t size = std::min<std::size_t>(at(1) | at(2) << 8, input.size() - kHeadBytes);
    const Body body(input.substr(kHeadBytes, size));
    input.remove_prefix(kHeadBytes + size);
    server.answer(peer, {kind, number, body.bytes()});
    // Only the creation of a variable may be answered later.
    if (peer.take().empty() && static_cast<MessageKind>(kind) != MessageKind::kCreate)
      throw Internal("request {} of kind {} was not answered", number, kind);
  }
}

}  // namespace cohort::fuzz
