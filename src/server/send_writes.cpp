#include "server/send_writes.h"

#include <utility>

namespace cohort::server {

std::vector<std::vector<std::byte>> send_writes(Connections& connections,
                                                const std::vector<WritesToSend>& all) {
  const auto request = [](const WritesToSend& writes, Carriage carriage) {
    return Request{writes.server, writes.kind, to_bytes(*writes.message, carriage)};
  };
  std::vector<Request> requests;
  for (const WritesToSend& writes : all) {
    const bool near = connections.reads_memory(writes.server);
    requests.push_back(request(writes, near ? Carriage::kByAddress : Carriage::kInMessage));
  }
  std::vector<std::vector<std::byte>> answers = connections.ask(std::move(requests));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (Decoder(answers[i]).number<CommitAnswer>() == CommitAnswer::kSendValues) {
      connections.set_reads_no_memory(all[i].server);
      answers[i] = connections.ask(request(all[i], Carriage::kInMessage));
    }
    Decoder answer(answers[i]);
    static_cast<void>(answer.number<CommitAnswer>());
    const std::span<const std::byte> ages = answer.blob();
    answers[i] = std::vector<std::byte>(ages.begin(), ages.end());
  }
  return answers;
}

}  // namespace cohort::server
