// The coordinator's part where workers are lost or missing. The parameter servers say what became of the
// executions of a lost one.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/server/detail/codec.h>

#include "coordinator_part.h"
#include "server/client/connections.h"
#include "server/serving/protocol.h"

namespace cohort::coordinator {
namespace {

using server::Connections;
using server::Decoder;
using server::Encoder;
using server::Execution;
using server::FenceAnswer;
using server::FinishAnswer;
using server::MessageKind;

/// A call that so many workers do not survive is not run again.
constexpr int kMostLosses = 4;

/// An execution that was committed: what the function returned, or why its effects are not complete.
struct SettledExecution {
  std::vector<std::byte> result = {};
  std::unique_ptr<Error> failure = {};
};

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

/// From now on the servers take nothing more from the worker's process. Those of its executions that were
/// committed, by number: on several servers, all of them make their parts now. Of the others nothing is left,
/// and they may be run again.
/// @throws Unavailable naming a server that is lost.
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

}  // namespace

void CoordinatorPart::on_lost(remote::Peer& peer, const Error& error) {
  present_.erase(&peer);
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(&peer);
  if (found == workers_.end()) return;
  WorkerLink& worker = found->second;
  if (worker.in_flight() > 0)
    logging::warning("{}; its {} calls are run by other workers", error.what(), worker.in_flight());
  lost_.push_back({peer.name(), peer.incarnation(), worker.take_all()});
  has_lost_.store(true);
  workers_.erase(found);
  update_counts();
}

void CoordinatorPart::run(const std::stop_token& stop) {
  while (true) {
    // Whoever polls looks at the conditions of all at each heartbeat.
    connections().poll_until([&] {
      return stop.stop_requested() || has_lost_.load() || std::chrono::steady_clock::now() >= next_notice_;
    });
    if (stop.stop_requested()) return;
    if (std::chrono::steady_clock::now() >= next_notice_) look_around();
    std::vector<LostWorker> lost;
    {
      const std::lock_guard lock(mutex_);
      lost = std::exchange(lost_, {});
      has_lost_.store(false);
      for (const LostWorker& worker : lost) settling_ += worker.calls.size();
    }
    for (LostWorker& worker : lost) settle_lost(std::move(worker));
  }
}

void CoordinatorPart::look_around() {
  next_notice_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  notice_missing_workers();
  connections().exclusively([this] {
    const std::lock_guard lock(mutex_);
    free_released();
  });
}

void CoordinatorPart::notice_missing_workers() {
  using Seconds = std::chrono::duration<double>;
  constexpr std::chrono::seconds kUntilWarning{10};
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (!workers_.empty() || queue_.empty()) {
    worker_seen_ = now;
    has_warned_ = false;
    return;
  }
  const Seconds missing = now - worker_seen_;
  if (missing > kUntilWarning && !std::exchange(has_warned_, true))
    logging::warning("{} calls wait for a worker: none has come, or all are lost", queue_.size());
  const bool too_long =
      options_.worker_timeout_seconds > 0 && missing.count() >= options_.worker_timeout_seconds;
  if (!refused_.empty() && std::ssize(refused_) == workers_of_job()) {
    fail_queued(InvalidArgument("no worker can take part: {} have other binaries than the coordinator; {}",
                                names_of_refused(), kSameBinary));
  } else if (too_long) {
    const std::string refused = refused_.empty()
                                    ? std::string()
                                    : fmt::format("; with other binaries than the coordinator's came {}: {}",
                                                  names_of_refused(), kSameBinary);
    fail_queued(Unavailable(
        "no worker takes part for {:.0f} s: none has come, or all are lost and were not started again{}",
        missing.count(), refused));
  }
}

std::ptrdiff_t CoordinatorPart::workers_of_job() const {
  return std::ranges::count_if(connections().place().addresses,
                               [](const remote::Address& address) { return address.task.type == "worker"; });
}

std::string CoordinatorPart::names_of_refused() const {
  std::string names;
  for (const auto& [id, name] : refused_) names += (names.empty() ? "" : ", ") + name;
  return names;
}

void CoordinatorPart::fail_queued(const Error& error) {
  const std::deque<Call> waiting = std::exchange(queue_, {});
  if (failure_ == nullptr) fail(error);
  for (const Call& call : waiting) call.state->fail(error);
  update_counts();
  connections().notify();
}

/// What the worker has committed has ended; the rest is run again.
void CoordinatorPart::settle_lost(LostWorker lost) {
  std::map<std::uint64_t, SettledExecution> settled;
  std::unique_ptr<Error> failure;
  try {
    settled = settle_executions(connections(), lost.incarnation);
  } catch (const Error& error) {
    failure = std::make_unique<Error>(error);
  }
  connections().exclusively([&] {
    const std::lock_guard lock(mutex_);
    settling_ -= lost.calls.size();
    if (failure != nullptr && failure_ == nullptr) fail(*failure);
    std::deque<Call> again;
    for (Call& call : lost.calls) {
      const auto execution = settled.find(call.number);
      if (failure != nullptr) {
        call.state->fail(*failure);
      } else if (execution == settled.end()) {
        // Only the first one was running.
        if (&call == &lost.calls.front() && ++call.losses == kMostLosses) {
          const Unavailable deadly("{} workers were lost while they ran this call, the last of them {}",
                                   kMostLosses, lost.name);
          if (failure_ == nullptr) fail(deadly);
          call.state->fail(deadly);
          continue;
        }
        again.push_back(std::move(call));
      } else if (execution->second.failure == nullptr) {
        call.state->succeed(execution->second.result);
      } else {
        if (failure_ == nullptr) fail(*execution->second.failure);
        call.state->fail(*execution->second.failure);
      }
    }
    take_back(std::move(again));
    give_calls();
  });
  connections().notify();
}

}  // namespace cohort::coordinator
