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

}  // namespace cohort::rpc
