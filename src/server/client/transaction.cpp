#include "client.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

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

namespace {

std::vector<VariableIndex> variables_of(const CommitMessage& message) {
  std::vector<VariableIndex> variables;
  for (const Write& write : message.writes) variables.push_back(write.variable);
  return variables;
}

/// One that was started again meanwhile has forgotten what it has prepared, and gets the writes once more.
void finish(Connections& connections, int server, const CommitMessage& message) {
  Encoder encoder;
  encoder.number(message.execution);
  const std::vector<std::byte> answer = connections.ask({server, MessageKind::kFinish, encoder.take()});
  if (Decoder(answer).number<FinishAnswer>() == FinishAnswer::kForgotten)
    static_cast<void>(send_writes(connections, {{server, MessageKind::kCommit, &message}}));
}

/// Has all servers make what they have prepared, also where one of them cannot.
void finish_all(Connections& connections, int decider, const std::map<int, CommitMessage>& prepared) {
  std::unique_ptr<Error> failure;
  for (const auto& [server, message] : prepared) {
    try {
      finish(connections, server, message);
    } catch (const Aborted&) {
      if (failure != nullptr) break;
      throw;  // whoever took this task for lost has finished the commit
    } catch (const Error& error) {
      if (failure != nullptr) continue;
      failure = std::make_unique<Error>(
          ErrorCode::kUnavailable,
          fmt::format(
              "ps {} has committed, but ps {} has not made its part, of {}: start the job again, from "
              "its last checkpoint; {}",
              decider, server, connections.variables_on(server, variables_of(message)), error.what()));
    }
  }
  if (failure != nullptr) throw_error(*failure);
}

}  // namespace

void Transaction::add(int server, Write write) {
  write.value = write.value.clone();
  if (changes_rows(write.kind)) write.indices = write.indices.clone();
  const std::lock_guard lock(mutex_);
  writes_[server].push_back(std::move(write));
}

std::vector<Write> Transaction::writes_to(int server, VariableIndex variable) const {
  std::vector<Write> result;
  const std::lock_guard lock(mutex_);
  const auto found = writes_.find(server);
  if (found == writes_.end()) return result;
  std::ranges::copy_if(found->second, std::back_inserter(result),
                       [&](const Write& write) { return write.variable == variable; });
  return result;
}

void Transaction::commit(Connections& connections, const Execution& execution, std::uint64_t forget,
                         std::span<const std::byte> result) const {
  if (writes_.empty()) return;
  const int decider = writes_.begin()->first;
  CommitMessage decision;
  std::map<int, CommitMessage> others;
  for (const auto& [server, writes] : writes_) {
    CommitMessage message{execution, forget, writes, {}};
    if (server == decider)
      decision = std::move(message);
    else
      others.emplace(server, std::move(message));
  }
  Decision remembered{{}, {result.begin(), result.end()}};
  remembered.others.reserve(others.size());
  for (const auto& [server, message] : others)
    remembered.others.push_back(static_cast<std::uint32_t>(server));
  decision.result = to_bytes(remembered);
  std::vector<WritesToSend> preparations;
  preparations.reserve(others.size());
  for (const auto& [server, message] : others)
    preparations.push_back({server, MessageKind::kPrepare, &message});
  static_cast<void>(send_writes(connections, preparations));
  static_cast<void>(send_writes(connections, {{decider, MessageKind::kCommit, &decision}}));
  finish_all(connections, decider, others);
}

}  // namespace cohort::server
