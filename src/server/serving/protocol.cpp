#include "protocol.h"

#include <algorithm>

namespace cohort::server {
namespace {

/// With the value of `at_end`, null for none, left to the caller.
std::vector<std::byte> encoded(const CommitMessage& message, Carriage carriage, const Write* at_end) {
  Encoder encoder;
  encoder.number(message.execution);
  encoder.number(message.forget);
  encoder.number(message.writes.size());
  for (const Write& write : message.writes)
    encode(encoder, write, &write == at_end ? Carriage::kAtEnd : carriage);
  encoder.blob(message.result);
  if (at_end != nullptr) encoder.align_end();
  return encoder.take();
}

}  // namespace

std::vector<std::byte> to_bytes(const CommitMessage& message, Carriage carriage) {
  return encoded(message, carriage, nullptr);
}

CommitParts to_parts(const CommitMessage& message) {
  const auto largest =
      std::ranges::max_element(message.writes, {}, [](const Write& write) { return write.value.bytes(); });
  if (largest == message.writes.end() || largest->value.bytes() < kWorthLending)
    return {to_bytes(message), std::nullopt};
  return {encoded(message, Carriage::kInMessage, &*largest), largest->value.on_host()};
}

CommitMessage parse_commit(std::span<const std::byte> bytes, const Sender& sender) {
  Decoder decoder(bytes);
  CommitMessage message;
  message.execution = decoder.number<Execution>();
  message.forget = decoder.number<std::uint64_t>();
  for (std::size_t left = decoder.count(); left > 0; --left)
    message.writes.push_back(decode_write(decoder, sender));
  const std::span<const std::byte> result = decoder.blob();
  message.result.assign(result.begin(), result.end());
  return message;
}

std::vector<std::byte> to_bytes(const Decision& decision) {
  Encoder encoder;
  encode(encoder, decision.others);
  encoder.blob(decision.result);
  return encoder.take();
}

Decision parse_decision(std::span<const std::byte> bytes) {
  Decoder decoder(bytes);
  Decision decision;
  decision.others = decode<std::vector<std::uint32_t>>(decoder);
  const std::span<const std::byte> result = decoder.blob();
  decision.result.assign(result.begin(), result.end());
  return decision;
}

std::vector<std::byte> to_bytes(const FenceAnswer& answer) {
  Encoder encoder;
  encoder.number(answer.committed.size());
  for (const CommitRecord& record : answer.committed) {
    encoder.number(record.execution.number);
    encoder.blob(record.result);
  }
  encode(encoder, answer.prepared);
  return encoder.take();
}

FenceAnswer parse_fence_answer(std::uint64_t incarnation, std::span<const std::byte> bytes) {
  Decoder decoder(bytes);
  FenceAnswer answer;
  for (std::size_t left = decoder.count(); left > 0; --left) {
    const auto number = decoder.number<std::uint64_t>();
    const std::span<const std::byte> result = decoder.blob();
    answer.committed.push_back({{incarnation, number}, {result.begin(), result.end()}});
  }
  answer.prepared = decode<std::vector<std::uint64_t>>(decoder);
  return answer;
}

}  // namespace cohort::server
