#include "coordinator/worker_part.h"

#include <chrono>
#include <utility>

#include "coordinator/protocol.h"
#include "server/failure.h"

namespace cohort::coordinator {
namespace {

using server::Decoder;
using server::Encoder;
using server::MessageKind;

/// How long the coordinator may take to be there.
constexpr std::chrono::seconds kStartLimit{60};

constexpr std::uint16_t to_number(CoordinatorMessage kind) { return static_cast<std::uint16_t>(kind); }

std::vector<std::byte> failure_of(const Error& error) {
  Encoder encoder;
  encoder.number(Outcome::kFailure);
  std::vector<std::byte> bytes = encoder.take();
  const std::vector<std::byte> failure = server::to_bytes(error);
  bytes.insert(bytes.end(), failure.begin(), failure.end());
  return bytes;
}

}  // namespace

WorkerPart::WorkerPart(std::shared_ptr<server::ServerVariables> variables, VariableOwner& owner,
                       const InputContext& context)
    : variables_(std::move(variables)), owner_(owner), context_(context) {
  variables_->client().connections().set_part(*this);
}

WorkerPart::~WorkerPart() {
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
  while (true) {
    connections.wait_until([this] { return has_work_.load() || over_.load(); });
    if (over_.load()) break;
    while (!to_make_.empty()) {
      const auto [number, call] = std::move(to_make_.front());
      to_make_.erase(to_make_.begin());
      make_element(number, call.body);
    }
    if (!calls_.empty()) {
      const Call call = std::move(calls_.front());
      calls_.pop_front();
      run_call(call);
      connections.poll();
    }
    has_work_.store(!calls_.empty() || !to_make_.empty());
  }
  if (loss_ != nullptr) throw_error(*loss_);
}

void WorkerPart::on_message(remote::Peer& peer, const remote::Message& message) {
  if (message.kind == static_cast<std::uint16_t>(MessageKind::kJobOver)) return over_.store(true);
  if (&peer != coordinator_) return;
  switch (static_cast<CoordinatorMessage>(message.kind)) {
    case CoordinatorMessage::kVariables: return variables_->learn(message.body, owner_);
    case CoordinatorMessage::kMake:
      to_make_.push_back({message.number, {0, {message.body.begin(), message.body.end()}}});
      return has_work_.store(true);
    case CoordinatorMessage::kRun:
      calls_.push_back({message.number, {message.body.begin(), message.body.end()}});
      return has_work_.store(true);
    case CoordinatorMessage::kCancel: cancelled_ = message.number; return;
    case CoordinatorMessage::kRecall: {
      const std::uint64_t first = calls_.empty() ? 0 : calls_.front().number;
      calls_.clear();
      return peer.send(to_number(CoordinatorMessage::kReturned), first);
    }
    default: return;
  }
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
  }
}

std::vector<std::byte> WorkerPart::execute(const Call& call) {
  Decoder decoder(call.body, variables_.get());
  const auto forget = decoder.number<std::uint64_t>();
  const Function& called = function(decoder.number<FunctionNumber>());
  const auto require_wanted = [&] {
    variables_->client().connections().poll();
    if (call.number <= cancelled_)
      throw Aborted("this call was cancelled because another one failed first; schedule it again");
    if (loss_ != nullptr) throw_error(*loss_);
  };
  require_wanted();
  return variables_->client().execute(
      call.number, forget,
      [&] {
        Encoder result;
        called.run(decoder, *this, result);
        return result.take();
      },
      require_wanted);
}

void WorkerPart::run_call(const Call& call) {
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
  }
}

void WorkerPart::send_done(std::uint64_t number, std::span<const std::byte> outcome_and_rest) {
  variables_->client().connections().exclusively(
      [&] { coordinator_->send(to_number(CoordinatorMessage::kDone), number, outcome_and_rest); });
}

}  // namespace cohort::coordinator
