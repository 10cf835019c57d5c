#include "thread_transport.h"

#include <algorithm>

namespace cohort::testing {

Transport::Ticket ThreadTransport::send(const Address& to, std::span<const std::byte> data) {
  const auto envelope = std::make_shared<Switchboard::Envelope>(data);
  const Switchboard::Line line{rank_, to.member, to.channel, to.tag};
  pending_[next_] = {.sent = envelope, .line = line, .into = {}, .received = {}};
  const std::lock_guard lock(board_->mutex_);
  board_->sent_[line].push_back(envelope);
  return next_++;
}

Transport::Ticket ThreadTransport::receive(const Address& from, std::span<std::byte> into) {
  pending_[next_] = {
      .sent = nullptr, .line = {from.member, rank_, from.channel, from.tag}, .into = into, .received = {}};
  return next_++;
}

/// What has arrived on a line goes to its receives, oldest first.
void ThreadTransport::deliver(const Switchboard::Line& line) {
  const std::lock_guard lock(board_->mutex_);
  auto& envelopes = board_->sent_[line];
  for (auto& [ticket, pending] : pending_) {
    if (envelopes.empty()) return;
    if (pending.sent != nullptr || pending.line != line || pending.received) continue;
    const std::span<const std::byte> data = envelopes.front()->data;
    std::copy_n(data.begin(), std::min(data.size(), pending.into.size()), pending.into.begin());
    pending.received = data.size();
    envelopes.front()->taken = true;
    envelopes.pop_front();
  }
}

std::optional<std::size_t> ThreadTransport::poll(Ticket ticket) {
  Pending& pending = pending_.at(ticket);
  std::optional<std::size_t> bytes;
  if (pending.sent != nullptr) {
    const std::lock_guard lock(board_->mutex_);
    if (pending.sent->taken) bytes = pending.sent->data.size();
  } else {
    deliver(pending.line);
    // One that is longer than its memory never completes.
    if (pending.received && *pending.received <= pending.into.size()) bytes = pending.received;
  }
  if (bytes) pending_.erase(ticket);
  return bytes;
}

bool ThreadTransport::cancel(Ticket ticket) {
  deliver(pending_.at(ticket).line);
  if (pending_.at(ticket).received) return false;
  pending_.erase(ticket);
  return true;
}

void ThreadTransport::send_control(int member, std::string_view text) {
  const std::lock_guard lock(board_->mutex_);
  board_->control_messages_[static_cast<std::size_t>(member)].push_back({rank_, std::string(text)});
}

std::optional<Transport::ControlMessage> ThreadTransport::receive_control() {
  const std::lock_guard lock(board_->mutex_);
  auto& queue = board_->control_messages_[static_cast<std::size_t>(rank_)];
  if (queue.empty()) return std::nullopt;
  ControlMessage message = std::move(queue.front());
  queue.pop_front();
  return message;
}

std::unique_ptr<Transport> ThreadTransport::split(std::span<const int> members, const ContextId& id) {
  std::vector<int> ranks(members.begin(), members.end());
  const auto own = static_cast<int>(std::ranges::find(ranks, rank_) - ranks.begin());
  const std::lock_guard lock(board_->mutex_);
  std::weak_ptr<Switchboard>& entry = board_->groups_[{std::move(ranks), id.number}];
  std::shared_ptr<Switchboard> group = entry.lock();
  if (group == nullptr) entry = group = std::make_shared<Switchboard>(static_cast<int>(members.size()));
  auto transport = std::make_unique<ThreadTransport>(std::move(group), own);
  transport->group_ = id.number;
  transport->context_ids_ = context_ids_;
  context_ids_->take(id);
  return transport;
}

}  // namespace cohort::testing
