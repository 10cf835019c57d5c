#include "coordinator_part.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <cohort/base/log.h>

#include "base/quiet_thread.h"
#include "rpc/protocol.h"
#include "worker_link.h"

namespace cohort::coordinator {
namespace {

using server::Encoder;
using server::MessageKind;

Aborted cancelled() {
  return Aborted("this call was cancelled because another one failed first; schedule it again");
}

}  // namespace

CoordinatorPart::CoordinatorPart(std::shared_ptr<server::ServerVariables> variables,
                                 const ClusterCoordinatorOptions& options)
    : variables_(std::move(variables)),
      shared_connections_(variables_->shared_connections()),
      options_(options),
      next_notice_(std::chrono::steady_clock::now()),
      worker_seen_(next_notice_) {
  connections().set_part(*this);
  thread_ = start_quiet_thread([this](const std::stop_token& stop) { run(stop); });
}

CoordinatorPart::~CoordinatorPart() {
  thread_.request_stop();
  connections().notify();
  thread_.join();
  connections().exclusively([&] {
    for (remote::Peer* worker : present_) worker->send(static_cast<std::uint16_t>(MessageKind::kJobOver), 0);
  });
  connections().take_leave(MessageKind::kJobOver);
  connections().clear_part();
  // Nobody settles these any more.
  const Aborted ended("the coordinator has ended before this call");
  for (const Call& call : queue_) call.state->fail(ended);
  for (auto& [peer, worker] : workers_) {
    for (const Call& call : worker.take_all()) call.state->fail(ended);
  }
  for (const LostWorker& lost : lost_) {
    for (const Call& call : lost.calls) call.state->fail(ended);
  }
}

std::shared_ptr<RemoteState> CoordinatorPart::schedule(FunctionNumber function, EncodedArguments arguments) {
  if (failed_.load()) throw_failure();
  if (queued_.load() >= options_.queue_limit) {
    connections().wait_until([this] { return queued_.load() < options_.queue_limit || failed_.load(); });
    if (failed_.load()) throw_failure();
  }
  auto state = std::make_shared<RemoteState>(shared_connections_);
  bool failed = false;
  {
    const std::lock_guard lock(mutex_);
    failed = failure_ != nullptr;  // since it was asked above
    if (!failed) queue_.push_back({function, std::move(arguments), state, next_place_++});
    update_counts();
  }
  if (failed) {
    throw_failure();
    throw cancelled();  // another thread has thrown the failure
  }
  if (expects_answer_.load()) connections().poll();
  if (has_room_.load()) {
    connections().exclusively([this] {
      const std::lock_guard lock(mutex_);
      give_calls();
    });
  }
  return state;
}

std::shared_ptr<const PerWorkerState> CoordinatorPart::make_per_worker(FunctionNumber function,
                                                                       EncodedArguments arguments) {
  return connections().exclusively([&] {
    const std::lock_guard lock(mutex_);
    free_released();
    const std::uint64_t number = next_per_worker_++;
    auto state = std::make_shared<const PerWorkerState>(number, released_);
    const PerWorkerMaker& maker =
        per_worker_.emplace(number, PerWorkerMaker{function, std::move(arguments)}).first->second;
    for (auto& [peer, worker] : workers_) send_maker(worker.peer(), number, maker);
    return state;
  });
}

void CoordinatorPart::send_maker(remote::Peer& worker, std::uint64_t number, const PerWorkerMaker& maker) {
  Encoder encoder;
  encoder.number(maker.function);
  encoder.blob(maker.arguments.bytes);
  worker.send(to_number(CoordinatorMessage::kMake), number, encoder.bytes());
}

/// One message for all PerWorkers that have lost their last handle since the one before.
void CoordinatorPart::free_released() {
  const std::vector<std::uint64_t> released = released_->take();
  if (released.empty()) return;
  Encoder encoder;
  server::encode(encoder, released);
  for (auto& [peer, worker] : workers_)
    worker.peer().send(to_number(CoordinatorMessage::kFree), 0, encoder.bytes());
  // Their makers may hold the last handles of others.
  for (const std::uint64_t number : released) per_worker_.erase(number);
}

void CoordinatorPart::join() {
  connections().wait_until([this] { return unsettled_.load() == 0; });
  if (failed_.load()) throw_failure();
}

bool CoordinatorPart::done() {
  connections().poll();
  // Asked first: a failure shows before its call counts as settled.
  const bool all_have_ended = unsettled_.load() == 0;
  if (failed_.load()) throw_failure();
  return all_have_ended;
}

/// After this nothing runs, and the coordinator can be used again.
void CoordinatorPart::throw_failure() {
  connections().wait_until([this] { return unsettled_.load() == 0; });
  std::unique_ptr<Error> failure;
  {
    const std::lock_guard lock(mutex_);
    failure = std::move(failure_);
    failed_.store(false);
  }
  if (failure != nullptr) throw_error(*failure);  // null: another thread has thrown it
}

void CoordinatorPart::on_connected(remote::Peer& peer) {
  if (peer.task().type == "worker") present_.insert(&peer);
}

void CoordinatorPart::on_message(remote::Peer& peer, const remote::Message& message) {
  try {
    take(peer, message);
  } catch (const DataLoss& error) {
    logging::error("{} sends what cannot be read, and is not listened to: {}", peer.name(), error.what());
  }
}

void CoordinatorPart::take(remote::Peer& peer, const remote::Message& message) {
  const std::lock_guard lock(mutex_);
  if (message.kind == to_number(CoordinatorMessage::kJoin)) return join_worker(peer, message);
  const auto found = workers_.find(&peer);
  if (found == workers_.end()) return;
  WorkerLink& worker = found->second;
  if (message.kind == to_number(CoordinatorMessage::kDone)) {
    end_call(worker, message);
  } else if (message.kind == to_number(CoordinatorMessage::kReturned)) {
    take_back(worker.take_from(message.number));
  }
  give_calls();
}

void CoordinatorPart::join_worker(remote::Peer& peer, const remote::Message& message) {
  if (server::Decoder(message.body).number<std::uint64_t>() != fingerprint_of_functions()) {
    logging::error("{} has another binary than the coordinator, with other functions: it ends; {}",
                   peer.name(), kSameBinary);
    refused_.insert_or_assign(peer.task().id, peer.name());
    peer.send(to_number(CoordinatorMessage::kOtherBinary), 0);
    return;
  }
  refused_.erase(peer.task().id);
  WorkerLink& worker = workers_.emplace(&peer, peer).first->second;
  worker.known_variables = variables_->size();
  peer.send(to_number(CoordinatorMessage::kVariables), 0, variables_->describe_from(0));
  for (const auto& [number, maker] : per_worker_) send_maker(peer, number, maker);
  give_calls();
}

void CoordinatorPart::end_call(WorkerLink& worker, const remote::Message& message) {
  std::optional<Call> call = worker.take(message.number);
  if (!call) return;
  server::Decoder decoder(message.body);
  if (!message.body.empty() && decoder.number<Outcome>() == Outcome::kSuccess) {
    call->state->succeed(decoder.rest());
  } else {
    const Error error = rpc::parse_failure(decoder.rest());
    if (failure_ == nullptr) fail(error);
    call->state->fail(error);
  }
  update_counts();
}

/// The first failure: what was not begun is cancelled, and what runs is asked to end. Before the result of
/// the call shows it, so that who has seen that schedules nothing that would still run.
void CoordinatorPart::fail(const Error& error) {
  logging::debug("a call has failed, the others are cancelled: {}", error.what());
  failure_ = std::make_unique<Error>(error);
  failed_.store(true);
  for (const Call& call : queue_) call.state->fail(cancelled());
  queue_.clear();
  for (auto& [peer, worker] : workers_) {
    if (worker.in_flight() > 0)
      worker.peer().send(to_number(CoordinatorMessage::kCancel), worker.next_number() - 1);
  }
}

/// Calls that did not run come before what was scheduled later, unless what is scheduled is being cancelled.
void CoordinatorPart::take_back(std::deque<Call> calls) {
  if (failure_ != nullptr) {
    for (const Call& call : calls) call.state->fail(cancelled());
    return;
  }
  const auto end = std::ranges::lower_bound(queue_, calls.empty() ? 0 : calls.back().place, {},
                                            [](const Call& call) { return call.place; });
  const auto between = queue_.insert(end, std::move_iterator(calls.begin()), std::move_iterator(calls.end()));
  std::inplace_merge(queue_.begin(), between, between + std::ssize(calls),
                     [](const Call& one, const Call& other) { return one.place < other.place; });
}

void CoordinatorPart::give_calls() {
  const auto give_first = [this](WorkerLink& worker) {
    Call call = std::move(queue_.front());
    queue_.pop_front();
    give(worker, std::move(call));
  };
  for (auto& [peer, worker] : workers_) {
    if (!queue_.empty() && worker.is_idle()) give_first(worker);
  }
  const WorkerLink::Clock::time_point now = WorkerLink::Clock::now();
  // What was scheduled first is for a worker that is free in a moment: sent ahead to another one, it might
  // come to lie behind a long call, and the worker take what was scheduled later.
  expects_answer_.store(
      std::ranges::any_of(workers_, [](const auto& entry) { return entry.second.is_about_to_be_idle(); }));
  bool gave = !expects_answer_.load();
  while (gave && !queue_.empty()) {
    gave = false;
    // In turns, so that a few calls are spread over the workers.
    for (auto& [peer, worker] : workers_) {
      if (queue_.empty() || !worker.has_room(now)) continue;
      give_first(worker);
      gave = true;
    }
  }
  recall_what_waits();
  update_counts();
}

void CoordinatorPart::give(WorkerLink& worker, Call call) {
  if (const std::size_t known = std::exchange(worker.known_variables, variables_->size());
      known < worker.known_variables) {
    worker.peer().send(to_number(CoordinatorMessage::kVariables), 0, variables_->describe_from(known));
  }
  Encoder head;
  head.number(worker.last_ended());
  head.number(call.function);
  const std::array<std::span<const std::byte>, 2> parts{head.bytes(), call.arguments.bytes};
  worker.peer().send(to_number(CoordinatorMessage::kRun), worker.next_number(), parts);
  worker.give(std::move(call));
}

/// What waits behind a long call goes to whoever is free next. A worker without work takes over from the
/// others also what waits behind short ones.
void CoordinatorPart::recall_what_waits() {
  if (workers_.size() < 2) return;
  const WorkerLink::Clock::time_point now = WorkerLink::Clock::now();
  const bool idle = queue_.empty() &&
                    std::ranges::any_of(workers_, [](const auto& entry) { return entry.second.is_idle(); });
  for (auto& [peer, worker] : workers_) {
    if (!worker.is_held_up(now) && !(idle && worker.has_more_than_one())) continue;
    worker.set_recalled();
    worker.peer().send(to_number(CoordinatorMessage::kRecall), 0);
  }
}

void CoordinatorPart::update_counts() {
  std::size_t unsettled = queue_.size();
  bool room = false;
  const WorkerLink::Clock::time_point now = WorkerLink::Clock::now();
  for (const auto& [peer, worker] : workers_) {
    unsettled += worker.in_flight();
    room = room || worker.has_room(now);
  }
  for (const LostWorker& lost : lost_) unsettled += lost.calls.size();
  queued_.store(queue_.size());
  unsettled_.store(unsettled + settling_);
  has_room_.store(room);
}

}  // namespace cohort::coordinator
