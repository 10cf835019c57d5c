#include "server_task.h"

#include <cohort/base/config.h>
#include <cohort/base/log.h>
#include <cohort/server/detail/codec.h>

#include "remote/supervised_task.h"
#include "server/client/server_variables.h"

namespace cohort::server {
namespace {

std::unique_ptr<Store> open_store(const remote::TaskPlace& place) {
  return place.memory >= 0 ? std::make_unique<Store>(place.memory) : std::make_unique<Store>();
}

/// By then a supervisor that is cut off or stopped was taken for lost by the first one, which has decided.
std::optional<Replication::Seconds> longest_question() {
  const Replication::Seconds silence = config().silence();
  if (silence.count() == 0) return std::nullopt;
  return 3 * silence;
}

/// Chief and workers.
std::vector<std::string> names_of_trainers(const remote::TaskPlace& place) {
  std::vector<std::string> names;
  for (const remote::Address& address : place.addresses) {
    if (address.task.type != "ps") names.push_back(remote::name_of(address.task));
  }
  return names;
}

}  // namespace

ServerTask::ServerTask(const remote::TaskPlace& place, double initial_values_timeout_seconds,
                       Preparations prepared)
    : store_(open_store(place)),
      replication_(place.supervisor < 0
                       ? nullptr
                       : std::make_unique<Replication>(
                             *store_, server_, remote::SupervisorLine(place.supervisor), longest_question(),
                             [this](remote::Peer& peer, const remote::Message& message) {
                               carry_out(peer, message);
                             })),
      server_(*store_, replication_.get(), std::move(prepared)),
      giver_(giver_of_values(place)),
      giver_limit_(initial_values_timeout_seconds),
      giver_seen_(std::chrono::steady_clock::now()),
      farewells_(*store_, place),
      clock_(names_of_trainers(place), store_->size() > 0 || farewells_.are_any()),
      over_(farewells_.are_complete()),
      connections_(place, store_->descriptor()) {
  connections_.set_part(*this);
  if (replication_ == nullptr) return;
  watch_ = std::make_unique<SupervisorWatch>(remote::SupervisorLine(place.supervisor),
                                             [this](remote::SupervisorWord word) {
                                               if (word != remote::SupervisorWord::kGranted) return;
                                               granted_.store(true);
                                               connections_.notify();
                                             });
}

void ServerTask::run() {
  using Clock = std::chrono::steady_clock;
  while (!over_.load() || (replication_ != nullptr && !replication_->is_settled())) {
    const Clock::time_point next_look = Clock::now() + std::chrono::milliseconds(500);
    connections_.wait_until([&] {
      return (over_.load() && (replication_ == nullptr || replication_->is_settled())) || is_due() ||
             Clock::now() >= next_look;
    });
    connections_.exclusively([this] {
      look_for_giver();
      if (replication_ == nullptr) return;
      if (granted_.exchange(false)) replication_->granted();
      replication_->require_supervisor();
      replication_->go_on();
    });
  }
}

/// Whether there is something to do for the standby.
bool ServerTask::is_due() const {
  return replication_ != nullptr && (granted_.load() || replication_->is_due());
}

/// A worker that gives the values may be started again, but not for ever.
void ServerTask::look_for_giver() {
  const auto now = std::chrono::steady_clock::now();
  if (giver_is_there_ || !server_.has_waiters()) return;
  const std::chrono::duration<double> missing = now - giver_seen_;
  if (giver_limit_.count() == 0 || missing < giver_limit_) return;
  const std::string name = remote::name_of(giver_);
  server_.fail_waiters(
      Unavailable("{} gives the initial values of variables, and was not there for {:.0f} s: it has not "
                  "started, or was lost "
                  "and not started again; start it, or the job anew",
                  name, missing.count()));
}

void ServerTask::on_connected(remote::Peer& peer) {
  if (peer.task().type == kStandbyJob) return;
  latest_[remote::name_of(peer.task())] = &peer;
  if (peer.task() != giver_) return;
  giver_is_there_ = true;
  server_.expect_values();
}

void ServerTask::on_message(remote::Peer& peer, const remote::Message& message) {
  if (replication_ != nullptr) {
    if (peer.task().type == kStandbyJob) return replication_->on_standby_message(peer, message);
    if (replication_->hold(peer, message)) return;
  }
  carry_out(peer, message);
}

void ServerTask::carry_out(remote::Peer& peer, const remote::Message& message) {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kEndStep: return end_step(peer, message);
    case MessageKind::kGoodbye: return take_leave_of(peer, message);
    case MessageKind::kJobOver:
      if (replication_ != nullptr) replication_->changed(MessageKind::kJobOver, {});
      confirm(peer, message);
      return over_.store(true);
    default: server_.answer(peer, message);
  }
}

void ServerTask::take_leave_of(remote::Peer& peer, const remote::Message& message) {
  clock_.leave(remote::name_of(peer.task()), peer.incarnation());
  if (peer.task() == giver_) {
    server_.fail_waiters(Unavailable(
        "{} has ended, and has not made this variable: all tasks must make the same ones", peer.name()));
  }
  try {
    farewells_.add(peer.task());
    if (replication_ != nullptr) {
      Encoder encoder;
      encoder.text(peer.task().type);
      encoder.number(peer.task().id);
      replication_->changed(MessageKind::kGoodbye, encoder.bytes());
    }
  } catch (const Error& error) {
    logging::warning("{} has ended; this server cannot note it, and waits for it: {}", peer.name(),
                     error.what());
  }
  confirm(peer, message);
  if (farewells_.are_complete()) over_.store(true);
}

/// That a request without an answer of its own was carried out.
void ServerTask::confirm(remote::Peer& peer, const remote::Message& message) {
  if (replication_ != nullptr)
    replication_->answer(peer, MessageKind::kReply, message.number, {});
  else
    peer.send(static_cast<std::uint16_t>(MessageKind::kReply), message.number);
}

void ServerTask::end_step(remote::Peer& peer, const remote::Message& message) {
  if (message.body.size() != sizeof(StepEnd)) return;  // not by a task of this program
  clock_.end_step(remote::name_of(peer.task()), peer.incarnation(), Decoder(message.body).number<StepEnd>(),
                  [&peer, number = message.number](std::int64_t origin) {
                    Encoder encoder;
                    encoder.number(origin);
                    peer.send(static_cast<std::uint16_t>(MessageKind::kReply), number, encoder.bytes());
                  });
}

void ServerTask::on_lost(remote::Peer& peer, const Error& error) {
  if (replication_ != nullptr) replication_->on_lost(peer);
  if (peer.task().type == kStandbyJob) {
    if (!over_.load())
      logging::warning("{}; this server goes on without it as soon as its supervisor lets it", error.what());
    return;
  }
  server_.on_lost(peer);
  if (latest_.at(remote::name_of(peer.task())) != &peer) return;  // it has connected anew
  clock_.leave(remote::name_of(peer.task()), peer.incarnation());
  if (peer.task() != giver_) return;
  giver_is_there_ = false;
  giver_seen_ = std::chrono::steady_clock::now();
  // A worker may be started again, and then makes its variables.
  if (giver_.type == "chief") server_.fail_waiters(error);
}

}  // namespace cohort::server
