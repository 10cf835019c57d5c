#include "server/commit_message.h"

namespace cohort::server {

std::vector<std::byte> to_bytes(const CommitMessage& message) {
  Encoder encoder;
  encoder.number(message.execution);
  encoder.number(message.forget);
  encoder.number(message.decider);
  encoder.number(message.writes.size());
  for (const Write& write : message.writes) encode(encoder, write);
  encoder.blob(message.result);
  return encoder.take();
}

CommitMessage parse_commit(std::span<const std::byte> bytes) {
  Decoder decoder(bytes);
  CommitMessage message;
  message.execution = decoder.number<Execution>();
  message.forget = decoder.number<std::uint64_t>();
  message.decider = decoder.number<std::uint32_t>();
  for (std::size_t left = decoder.count(); left > 0; --left) message.writes.push_back(decode_write(decoder));
  const std::span<const std::byte> result = decoder.blob();
  message.result.assign(result.begin(), result.end());
  return message;
}

std::vector<std::byte> to_bytes(const FenceAnswer& answer) {
  Encoder encoder;
  encoder.number(answer.committed.size());
  for (const CommitRecord& record : answer.committed) {
    encoder.number(record.execution.number);
    encoder.blob(record.result);
  }
  encoder.number(answer.prepared.size());
  for (const FenceAnswer::Prepared& prepared : answer.prepared) {
    encoder.number(prepared.number);
    encoder.number(prepared.decider);
  }
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
  for (std::size_t left = decoder.count(); left > 0; --left) {
    const auto number = decoder.number<std::uint64_t>();
    answer.prepared.push_back({number, decoder.number<std::uint32_t>()});
  }
  return answer;
}

}  // namespace cohort::server
