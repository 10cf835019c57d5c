#include "server/send_writes.h"

#include <utility>

namespace cohort::server {

std::vector<std::vector<std::byte>> send_writes(Connections& connections,
                                                const std::vector<WritesToSend>& all) {
  const auto in_message = [](const WritesToSend& writes) {
    CommitParts parts = to_parts(*writes.message);
    return Request{writes.server, writes.kind, std::move(parts.front), std::move(parts.end)};
  };
  std::vector<Request> requests;
  for (const WritesToSend& writes : all) {
    if (connections.reads_memory(writes.server))
      requests.push_back({writes.server, writes.kind, to_bytes(*writes.message, Carriage::kByAddress)});
    else
      requests.push_back(in_message(writes));
  }
  std::vector<std::vector<std::byte>> answers = connections.ask(std::move(requests));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (Decoder(answers[i]).number<CommitAnswer>() == CommitAnswer::kTaken) continue;
    connections.set_reads_no_memory(all[i].server);
    answers[i] = connections.ask(in_message(all[i]));
  }
  for (std::vector<std::byte>& answer : answers) {
    Decoder decoder(answer);
    static_cast<void>(decoder.number<CommitAnswer>());
    const std::span<const std::byte> rest = decoder.blob();
    answer = {rest.begin(), rest.end()};
  }
  return answers;
}

}  // namespace cohort::server
