#include "replication.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/server/detail/codec.h>

#include "base/quiet_thread.h"
#include "rpc/protocol.h"
#include "server/store/store_layout.h"

namespace cohort::server {
namespace {

/// What may wait to be sent of a copy: a request that is answered meanwhile does not wait behind more.
constexpr std::size_t kMostBacklog = std::size_t{8} << 20;

/// A read with writes that are not committed tries them in the memory.
bool tries_writes(const remote::Message& message) {
  Decoder decoder(message.body);
  static_cast<void>(decoder.number<VariableIndex>());
  return decoder.count() > 0;
}

}  // namespace

SupervisorWatch::SupervisorWatch(remote::SupervisorLine line,
                                 std::function<void(remote::SupervisorWord)> heard)
    : line_(line), heard_(std::move(heard)), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_) throw Unavailable("the system has no eventfd: {}", std::strerror(errno));
  thread_ = start_quiet_thread([this] { listen(); });
}

SupervisorWatch::~SupervisorWatch() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_.get(), &one, sizeof one));
}

void SupervisorWatch::listen() {
  std::array<pollfd, 2> polled{{{line_.descriptor(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
  while (true) {
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[1].revents != 0) return;
    bool any = false;
    while (const auto word = line_.receive()) {
      any = true;
      heard_(*word);
    }
    if (!any) return;  // the supervisor has ended
  }
}

Replication::Replication(const Store& store, const ParameterServer& server, remote::SupervisorLine supervisor,
                         std::optional<Seconds> longest_question, CarryOut carry_out)
    : store_(store),
      server_(server),
      supervisor_(supervisor),
      longest_question_(longest_question),
      carry_out_(std::move(carry_out)) {
  ask();
}

void Replication::ask() {
  state_ = State::kAsking;
  asked_at_ = std::chrono::steady_clock::now();
  supervisor_.send(remote::SupervisorWord::kAlone);
}

void Replication::require_supervisor() const {
  if (state_ != State::kAsking || !longest_question_) return;
  const Seconds waited = std::chrono::steady_clock::now() - asked_at_;
  if (waited < *longest_question_) return;
  throw Unavailable(
      "this server may change nothing without its standby before its supervisor says so, which has not "
      "answered for {:.0f} s: it is stopped, or was taken for lost; this server ends, and its standby goes "
      "on "
      "where it was told to",
      waited.count());
}

bool Replication::hold(remote::Peer& peer, const remote::Message& message) {
  if (takes_changes() || may_pass(message)) return false;
  requests_.push_back({&peer, message.kind, message.number, {message.body.begin(), message.body.end()}});
  return true;
}

/// Whether a request is carried out at once though changes wait.
bool Replication::may_pass(const remote::Message& message) const {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kIdentify:
    case MessageKind::kEndStep: return true;
    case MessageKind::kRead:
    case MessageKind::kReadRows:
    case MessageKind::kReadSlot: try { return state_ != State::kCopying || !tries_writes(message);
      } catch (const Error&) {
        return true;  // no such request: the answer says so
      }
    default: return false;
  }
}

void Replication::on_standby_message(remote::Peer& standby, const remote::Message& message) {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kFollow: return follow(standby, message);
    case MessageKind::kApplied:
      if (&standby == standby_) applied(message.number);
      return;
    case MessageKind::kTookOver:
      answers_.clear();
      requests_.clear();
      throw Aborted(
          "{} has taken over: this server was taken for lost, and ends; tasks that were still connected to "
          "it "
          "go on with the other one",
          standby.name());
    default: return;
  }
}

void Replication::follow(remote::Peer& standby, const remote::Message& message) {
  const auto version =
      message.body.size() == sizeof(Following) ? Decoder(message.body).number<Following>() : Following{};
  if (version.store_version != kStoreVersion || version.byte_order != kByteOrder) {
    const InvalidArgument error(
        "{} keeps variables in another form (version {}) than this server (version {}): start the job with "
        "one version of Cohort, on hosts of one kind",
        standby.name(), version.store_version, kStoreVersion);
    return standby.send(to_number(MessageKind::kFailure), 0, rpc::to_bytes(error));
  }
  if (standby_ != nullptr) lose_standby();
  standby_ = &standby;
  if (state_ == State::kAlone) begin_copy();
}

void Replication::begin_copy() {
  state_ = State::kCopying;
  sent_ = 0;
  applied_ = 0;
  copy_.emplace(store_);
  Encoder encoder;
  encoder.number(copy_->plan());
  standby_->send(to_number(MessageKind::kCopyBegin), 0, encoder.bytes());
  go_on();
}

bool Replication::is_due() const { return copy_.has_value() && standby_->backlog() < kMostBacklog; }

void Replication::go_on() {
  while (is_due()) {
    std::optional<StoreChunk> chunk = copy_->next();
    if (!chunk) return send_rest();
    const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(chunk->bytes));
    standby_->send_shared(to_number(MessageKind::kCopyBytes), 0,
                          std::as_bytes(std::span(&chunk->position, 1)), *owner, owner);
  }
}

void Replication::send_rest() {
  for (const auto& [execution, message] : server_.prepared())
    standby_->send(to_number(MessageKind::kCopyPrepared), 0, to_bytes(message));
  const std::uint64_t bytes = copy_->bytes();
  copy_.reset();
  standby_->send(to_number(MessageKind::kCopyEnd), ++sent_, std::as_bytes(std::span(&bytes, 1)));
}

void Replication::applied(std::uint64_t number) {
  applied_ = std::max(applied_, number);
  if (state_ == State::kCopying && !copy_ && applied_ == sent_) {
    state_ = State::kPaired;
    supervisor_.send(remote::SupervisorWord::kCopied);
    logging::info("{} has all variables of this server", standby_->name());
    carry_out_requests();
  } else if (state_ == State::kPaired) {
    give_answers();
  }
}

/// Answers whose changes the standby has made, or all where there is none.
void Replication::give_answers() {
  while (!answers_.empty() && (state_ == State::kAlone || answers_.front().after <= applied_)) {
    const Answer& first = answers_.front();
    first.peer->send(to_number(first.kind), first.number, first.body);
    answers_.pop_front();
  }
}

void Replication::carry_out_requests() {
  while (takes_changes() && !requests_.empty()) {
    const Request first = std::move(requests_.front());
    requests_.pop_front();
    carry_out_(*first.peer, {first.kind, first.number, first.body});
  }
}

void Replication::on_lost(const remote::Peer& peer) {
  if (&peer == standby_) return lose_standby();
  // It is gone, or asks again over another connection.
  std::erase_if(requests_, [&](const Request& request) { return request.peer == &peer; });
  std::erase_if(answers_, [&](const Answer& answer) { return answer.peer == &peer; });
}

void Replication::lose_standby() {
  standby_ = nullptr;
  copy_.reset();
  if (state_ == State::kPaired) return ask();
  if (state_ != State::kCopying) return;
  state_ = State::kAlone;
  carry_out_requests();
}

void Replication::granted() {
  if (state_ != State::kAsking) return;
  state_ = State::kAlone;
  give_answers();
  carry_out_requests();
  if (standby_ != nullptr) begin_copy();
}

void Replication::changed(MessageKind kind, std::span<const std::byte> body) {
  if (state_ != State::kPaired) return;
  try {
    standby_->send(to_number(kind), ++sent_, body);
  } catch (const std::exception& error) {
    logging::warning("{} is left out, for a change could not be sent to it: {}", standby_->name(),
                     error.what());
    lose_standby();
  }
}

void Replication::answer(remote::Peer& peer, MessageKind kind, std::uint64_t number,
                         std::span<const std::byte> body) {
  if (state_ == State::kAlone || (state_ == State::kPaired && applied_ == sent_))
    return peer.send(to_number(kind), number, body);
  answers_.push_back({&peer, kind, number, {body.begin(), body.end()}, sent_});
}

}  // namespace cohort::server
