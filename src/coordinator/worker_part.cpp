#include "coordinator/worker_part.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <cohort/base/timeline_span.h>

#include "coordinator/listener.h"
#include "coordinator/protocol.h"
#include "remote/introduction.h"
#include "rpc/failure.h"

namespace cohort::coordinator {
namespace {

using server::Decoder;
using server::Encoder;
using server::MessageKind;

/// How long the coordinator may take to be there.
constexpr std::chrono::seconds kStartLimit{60};

std::vector<std::byte> failure_of(const Error& error) {
  Encoder encoder;
  encoder.number(Outcome::kFailure);
  std::vector<std::byte> bytes = encoder.take();
  const std::vector<std::byte> failure = rpc::to_bytes(error);
  bytes.insert(bytes.end(), failure.begin(), failure.end());
  return bytes;
}

}  // namespace

WorkerPart::WorkerPart(std::shared_ptr<server::ServerVariables> variables, VariableOwner& owner,
                       const InputContext& context)
    : variables_(std::move(variables)), owner_(owner), context_(context) {
  variables_->client().connections().set_part(*this);
  variables_->set_runs_functions(true);
}

WorkerPart::~WorkerPart() {
  variables_->set_runs_functions(false);
  variables_->client().connections().clear_part();
  variables_->forget_learned();
}

void WorkerPart::run() {
  server::Connections& connections = variables_->client().connections();
  coordinator_ = &connections.connect({"chief", 0}, Deadline::after(kStartLimit));
  connections.exclusively([&] {
    Encoder encoder;
    encoder.number(fingerprint_of_functions());
    coordinator_->send(to_number(CoordinatorMessage::kJoin), 0, encoder.bytes());
  });
  Listener listener(connections);
  while (true) {
    connections.wait_until([this] { return has_work_.load() || over_.load(); });
    if (over_.load()) break;
    // Another thread may poll, and take messages.
    const std::optional<Work> work = connections.exclusively([this] { return next_work(); });
    if (!work) continue;
    {
      const Listener::Running running(listener);
      do_work(*work);
    }
    connections.poll();
  }
  if (loss_ != nullptr) throw_error(*loss_);
}

void WorkerPart::do_work(const Work& work) {
  switch (work.kind) {
    case CoordinatorMessage::kMake: return make_element(work.number, work.body);
    case CoordinatorMessage::kFree: return free_elements(work.body);
    default: return run_call(work);
  }
}

std::optional<WorkerPart::Work> WorkerPart::next_work() {
  std::optional<Work> work;
  if (!work_.empty()) {
    work = std::move(work_.front());
    work_.pop_front();
  }
  has_work_.store(!work_.empty());
  return work;
}

void WorkerPart::on_message(remote::Peer& peer, const remote::Message& message) {
  if (message.kind == static_cast<std::uint16_t>(MessageKind::kJobOver)) {
    variables_->client().connections().set_job_over();
    return over_.store(true);
  }
  if (&peer != coordinator_) return;
  const auto kind = static_cast<CoordinatorMessage>(message.kind);
  switch (kind) {
    case CoordinatorMessage::kOtherBinary: return take_no_part(peer);
    case CoordinatorMessage::kVariables: return variables_->learn(message.body, owner_);
    case CoordinatorMessage::kMake:
    case CoordinatorMessage::kFree:
    case CoordinatorMessage::kRun:
      work_.push_back({kind, message.number, {message.body.begin(), message.body.end()}});
      return has_work_.store(true);
    case CoordinatorMessage::kCancel: cancelled_.store(message.number); return;
    case CoordinatorMessage::kRecall: return give_back(peer);
    default: return;
  }
}

/// Elements are made and freed all the same.
void WorkerPart::give_back(remote::Peer& peer) {
  const auto is_call = [](const Work& work) { return work.kind == CoordinatorMessage::kRun; };
  const auto first = std::ranges::find_if(work_, is_call);
  const std::uint64_t number = first == work_.end() ? 0 : first->number;
  std::erase_if(work_, is_call);
  peer.send(to_number(CoordinatorMessage::kReturned), number);
}

void WorkerPart::take_no_part(const remote::Peer& coordinator) {
  loss_ = std::make_unique<Error>(
      ErrorCode::kInvalidArgument,
      fmt::format("{} has another binary than the coordinator, {}: they have other functions; start all "
                  "tasks with the same one",
                  remote::name_of(variables_->client().connections().place().task), coordinator.name()));
  over_.store(true);
}

void WorkerPart::on_lost(remote::Peer& peer, const Error& error) {
  if (&peer != coordinator_ || over_.load()) return;
  loss_ = std::make_unique<Error>(ErrorCode::kUnavailable,
                                  fmt::format("{}; it is the coordinator: the job ends", error.what()));
  over_.store(true);
}

const std::shared_ptr<void>& WorkerPart::element(std::uint64_t number) const {
  const auto found = elements_.find(number);
  if (found == elements_.end()) throw InvalidArgument("this worker has no element {} of a PerWorker", number);
  if (found->second.failure != nullptr) throw_error(*found->second.failure);
  return found->second.value;
}

void WorkerPart::free_elements(std::span<const std::byte> body) {
  Decoder decoder(body);
  for (const auto number : server::decode<std::vector<std::uint64_t>>(decoder)) elements_.erase(number);
}

void WorkerPart::make_element(std::uint64_t number, std::span<const std::byte> body) {
  Element& element = elements_[number];
  try {
    Decoder decoder(body);
    const Function& made_by = function(decoder.number<FunctionNumber>());
    Decoder arguments(decoder.blob(), variables_.get());
    element.value = made_by.make(arguments, *this);
  } catch (const Error& error) {
    element.failure = std::make_unique<Error>(error);
  } catch (const std::exception& error) {
    element.failure = std::make_unique<Error>(ErrorCode::kAborted, error.what());
  } catch (...) {
    element.failure =
        std::make_unique<Error>(ErrorCode::kAborted, "a function threw what is no exception of std's");
  }
}

std::vector<std::byte> WorkerPart::execute(const Work& call) {
  Decoder decoder(call.body, variables_.get());
  const auto forget = decoder.number<std::uint64_t>();
  const Function& called = function(decoder.number<FunctionNumber>());
  const auto require_wanted = [&] {
    variables_->client().connections().poll();
    if (call.number <= cancelled_.load())
      throw Aborted("this call was cancelled because another one failed first; schedule it again");
    if (over_.load() && loss_ != nullptr) throw_error(*loss_);
  };
  require_wanted();
  return variables_->client().execute(
      call.number, forget,
      [&] {
        const TimelineSpan span(called.short_name());
        Encoder result;
        called.run(decoder, *this, result);
        return result.take();
      },
      require_wanted);
}

void WorkerPart::run_call(const Work& call) {
  try {
    const std::vector<std::byte> result = execute(call);
    Encoder head;
    head.number(Outcome::kSuccess);
    const std::array<std::span<const std::byte>, 2> parts{head.bytes(), result};
    variables_->client().connections().exclusively(
        [&] { coordinator_->send(to_number(CoordinatorMessage::kDone), call.number, parts); });
  } catch (const Error& error) {
    send_done(call.number, failure_of(error));
  } catch (const std::exception& error) {
    send_done(call.number,
              failure_of(Error(ErrorCode::kAborted, fmt::format("a function threw: {}", error.what()))));
  } catch (...) {
    send_done(call.number,
              failure_of(Error(ErrorCode::kAborted, "a function threw what is no exception of std's")));
  }
}

void WorkerPart::send_done(std::uint64_t number, std::span<const std::byte> outcome_and_rest) {
  variables_->client().connections().exclusively(
      [&] { coordinator_->send(to_number(CoordinatorMessage::kDone), number, outcome_and_rest); });
}

}  // namespace cohort::coordinator
