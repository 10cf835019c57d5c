#include "rpc/failure.h"

#include <cohort/rpc/detail/codec.h>

namespace cohort::rpc {

std::vector<std::byte> to_bytes(const Error& error) {
  Encoder encoder;
  encoder.number(error.code());
  encoder.text(error.what());
  return encoder.take();
}

Error parse_failure(std::span<const std::byte> bytes) {
  Decoder decoder(bytes);
  const auto code = decoder.number<ErrorCode>();
  return {code, std::string(decoder.text())};
}

}  // namespace cohort::rpc
