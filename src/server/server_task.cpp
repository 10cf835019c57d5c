#include "server/server_task.h"

#include "remote/introduction.h"
#include <cohort/base/log.h>
#include <cohort/server/detail/codec.h>

#include "server/server_variables.h"

namespace cohort::server {
namespace {

std::unique_ptr<Store> open_store(const remote::TaskPlace& place) {
  return place.memory >= 0 ? std::make_unique<Store>(place.memory) : std::make_unique<Store>();
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

ServerTask::ServerTask(const remote::TaskPlace& place, double initial_values_timeout_seconds)
    : store_(open_store(place)),
      server_(*store_),
      giver_(giver_of_values(place)),
      giver_limit_(initial_values_timeout_seconds),
      giver_seen_(std::chrono::steady_clock::now()),
      farewells_(*store_, place),
      clock_(names_of_trainers(place), store_->size() > 0 || farewells_.are_any()),
      over_(farewells_.are_complete()),
      connections_(place, store_->descriptor()) {
  connections_.set_part(*this);
}

void ServerTask::run() {
  using Clock = std::chrono::steady_clock;
  while (!over_.load()) {
    const Clock::time_point next_look = Clock::now() + std::chrono::milliseconds(500);
    connections_.wait_until([&] { return over_.load() || Clock::now() >= next_look; });
    connections_.exclusively([this] { look_for_giver(); });
  }
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
  latest_[remote::name_of(peer.task())] = &peer;
  if (peer.task() != giver_) return;
  giver_is_there_ = true;
  server_.expect_values();
}

void ServerTask::on_message(remote::Peer& peer, const remote::Message& message) {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kEndStep: return end_step(peer, message);
    case MessageKind::kGoodbye: return take_leave_of(peer, message);
    case MessageKind::kJobOver:
      peer.send(static_cast<std::uint16_t>(MessageKind::kReply), message.number);
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
  } catch (const Error& error) {
    logging::warning("{} has ended; this server cannot note it, and waits for it: {}", peer.name(),
                     error.what());
  }
  peer.send(static_cast<std::uint16_t>(MessageKind::kReply), message.number);
  if (farewells_.are_complete()) over_.store(true);
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
