#include "coordinator/settle_executions.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include <cohort/server/detail/codec.h>

#include "server/commit_message.h"

namespace cohort::coordinator {
namespace {

using server::Connections;
using server::Decoder;
using server::Encoder;
using server::Execution;
using server::FenceAnswer;
using server::FinishAnswer;
using server::MessageKind;

std::vector<std::vector<std::byte>> ask_all(Connections& connections, MessageKind kind,
                                            std::uint64_t incarnation) {
  std::vector<server::Request> requests;
  for (int server = 0; server < connections.servers(); ++server) {
    Encoder encoder;
    encoder.number(incarnation);
    requests.push_back({server, kind, encoder.take()});
  }
  return connections.ask(std::move(requests));
}

/// What one server knows of the executions, by number.
struct Known {
  std::set<std::uint64_t> committed;
  std::set<std::uint64_t> prepared;
};

std::vector<Known> known_by_server(std::span<const FenceAnswer> answers) {
  std::vector<Known> all;
  for (const FenceAnswer& answer : answers) {
    Known known;
    for (const server::CommitRecord& record : answer.committed)
      known.committed.insert(record.execution.number);
    known.prepared.insert(answer.prepared.begin(), answer.prepared.end());
    all.push_back(std::move(known));
  }
  return all;
}

/// Has another server of a committed execution make its part. False: it has lost what it had prepared.
bool finish(Connections& connections, int server, const Execution& execution) {
  Encoder encoder;
  encoder.number(execution);
  const std::vector<std::byte> answer = connections.ask({server, MessageKind::kFinish, encoder.take()});
  return Decoder(answer).number<FinishAnswer>() == FinishAnswer::kMade;
}

/// Has the other servers of a committed execution make their parts.
SettledExecution complete(Connections& connections, const Execution& execution,
                          const server::Decision& decision, std::span<const Known> known) {
  SettledExecution settled{decision.result, nullptr};
  for (const std::uint32_t other : decision.others) {
    if (known[other].committed.contains(execution.number)) continue;
    if (known[other].prepared.contains(execution.number) &&
        finish(connections, static_cast<int>(other), execution)) {
      continue;
    }
    settled.failure = std::make_unique<Error>(
        ErrorCode::kUnavailable,
        fmt::format(
            "a worker and ps {} were lost at the same time: what this call wrote there is lost, and its "
            "other effects are not; start the job again, from its last checkpoint",
            other));
  }
  return settled;
}

}  // namespace

std::map<std::uint64_t, SettledExecution> settle_executions(Connections& connections,
                                                            std::uint64_t incarnation) {
  std::vector<FenceAnswer> answers;
  for (const std::vector<std::byte>& bytes : ask_all(connections, MessageKind::kFence, incarnation))
    answers.push_back(server::parse_fence_answer(incarnation, bytes));
  const std::vector<Known> known = known_by_server(answers);
  std::map<std::uint64_t, SettledExecution> settled;
  for (const FenceAnswer& answer : answers) {
    for (const server::CommitRecord& record : answer.committed) {
      if (record.result.empty()) continue;  // not the server that decides
      settled.insert_or_assign(
          record.execution.number,
          complete(connections, record.execution, server::parse_decision(record.result), known));
    }
  }
  static_cast<void>(ask_all(connections, MessageKind::kDrop, incarnation));
  return settled;
}

}  // namespace cohort::coordinator
