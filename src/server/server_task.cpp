#include "server/server_task.h"
#include "remote/introduction.h"

namespace cohort::server {
namespace {

std::unique_ptr<Store> open_store(const remote::TaskPlace& place) {
  return place.memory >= 0 ? std::make_unique<Store>(place.memory) : std::make_unique<Store>();
}

}  // namespace

ServerTask::ServerTask(const remote::TaskPlace& place)
    : store_(open_store(place)), server_(*store_), connections_(place, store_->descriptor()) {
  for (const remote::Address& address : place.addresses) {
    if (address.task.type != "ps") still_there_.insert(remote::name_of(address.task));
  }
  connections_.set_part(*this);
}

void ServerTask::run() {
  connections_.wait_until([this] { return over_.load(); });
}

void ServerTask::on_message(remote::Peer& peer, const remote::Message& message) {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kGoodbye:
      still_there_.erase(remote::name_of(peer.task()));
      if (still_there_.empty()) over_.store(true);
      return;
    case MessageKind::kJobOver: over_.store(true); return;
    default: server_.answer(peer, message);
  }
}

void ServerTask::on_lost(remote::Peer& peer, const Error& /*error*/) { server_.on_lost(peer); }

}  // namespace cohort::server
