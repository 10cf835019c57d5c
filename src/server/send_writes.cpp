#include "server/send_writes.h"

#include <utility>

namespace cohort::server {

void send_writes(Connections& connections, const std::vector<WritesToSend>& all) {
  const auto request = [](const WritesToSend& writes, Carriage carriage) {
    return Request{writes.server, writes.kind, to_bytes(*writes.message, carriage)};
  };
  std::vector<Request> requests;
  for (const WritesToSend& writes : all) {
    const bool near = connections.reads_memory(writes.server);
    requests.push_back(request(writes, near ? Carriage::kByAddress : Carriage::kInMessage));
  }
  const std::vector<std::vector<std::byte>> answers = connections.ask(std::move(requests));
  std::vector<Request> again;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (Decoder(answers[i]).number<CommitAnswer>() == CommitAnswer::kTaken) continue;
    connections.set_reads_no_memory(all[i].server);
    again.push_back(request(all[i], Carriage::kInMessage));
  }
  if (!again.empty()) static_cast<void>(connections.ask(std::move(again)));
}

}  // namespace cohort::server
