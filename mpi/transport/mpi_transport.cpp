#include "mpi_transport.h"

#include <algorithm>
#include <exception>
#include <limits>

#include <cohort/base/error.h>

namespace cohort::mpi {
namespace {

int to_byte_count(std::size_t bytes) {
  COHORT_CHECK(bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  return static_cast<int>(bytes);
}

/// Transfers: a message in each direction.
constexpr std::size_t kFew = 2;

/// MPI copies such a message at once.
constexpr std::size_t kShortBytes = 1024;

}  // namespace

MpiTransport::MpiTransport(std::shared_ptr<SharedComms> comms, int rank)
    : comms_(std::move(comms)),
      collectives_(comms_),
      context_ids_(std::make_shared<ContextIdPool>(comms_->groups())),
      ancestor_rank_(rank) {}

MpiTransport::MpiTransport(const MpiTransport& parent, std::span<const int> members, const ContextId& id)
    : comms_(parent.comms_),
      collectives_(comms_),
      context_ids_(parent.context_ids_),
      group_(id.number),
      ancestor_rank_(parent.ancestor_rank_) {
  ancestor_ranks_.reserve(members.size());
  for (const int member : members) ancestor_ranks_.push_back(parent.ancestor_rank_of(member));
  context_ids_->take(id);
}

// A group's number is free again when nothing with it can be on its way.
MpiTransport::~MpiTransport() {
  try {
    const MpiLock::Guard guard = comms_->lock().acquire();
    if (has_control_messages_ || free_.size() < pending_.size())
      leave_open();
    else if (group_ != 0)
      context_ids_->give_back(group_);
  } catch (const std::exception&) {
    leave_open();  // this thread may not call MPI
  }
}

void MpiTransport::leave_open() noexcept {
  comms_->leave_open();
  pending_sends_.leak();
}

Transport::Ticket MpiTransport::new_ticket(bool receives, std::size_t bytes) {
  if (free_.empty()) {
    free_.reserve(pending_.size() + 1);
    free_.push_back(static_cast<Ticket>(pending_.size()));
    pending_.emplace_back();
    requests_.grow();
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  pending_[ticket] = {.receives = receives, .bytes = bytes, .polled = sweeps_};
  ++in_flight_;
  return ticket;
}

Transport::Ticket MpiTransport::send(const Address& to, std::span<const std::byte> data) {
  const MpiLock::Guard guard = comms_->lock().acquire();
  const Ticket ticket = new_ticket(false, data.size());
  requests_[ticket] = isend(data.data(), to_byte_count(data.size()), MPI_BYTE, worker_of(to.member),
                            tag_to(to.member, to.tag), comms_->comm(to.channel));
  // As a rule it has left already, and needs no question of its own later.
  if (data.size() <= kShortBytes) note_completed(requests_.test_one(ticket));
  return ticket;
}

Transport::Ticket MpiTransport::receive(const Address& from, std::span<std::byte> room) {
  const MpiLock::Guard guard = comms_->lock().acquire();
  const Ticket ticket = new_ticket(true, 0);
  requests_[ticket] = irecv(room.data(), to_byte_count(room.size()), MPI_BYTE, worker_of(from.member),
                            tag_from(from.member, from.tag), comms_->comm(from.channel));
  return ticket;
}

// MPI looks at all its connections whenever it is asked about anything. So it is asked about many transfers
// at once: by the first poll of a ticket that was polled before and has not completed since. Of a few it is
// asked about each, since it answers those questions sooner.
std::optional<std::size_t> MpiTransport::poll(Ticket ticket) {
  Pending& pending = pending_[ticket];
  if (!pending.completed) {
    if (in_flight_ <= kFew)
      test(ticket);
    else if (pending.polled == sweeps_)
      sweep();
  }
  pending.polled = sweeps_;
  if (!pending.completed) return std::nullopt;
  release(ticket);
  return pending.bytes;
}

void MpiTransport::test(Ticket ticket) {
  if (!requests_.pending(ticket)) return;  // a longer message than fits, which is never complete
  const MpiLock::Guard guard = comms_->lock().try_acquire();
  if (guard) note_completed(requests_.test_one(ticket));
}

void MpiTransport::sweep() {
  const MpiLock::Guard guard = comms_->lock().try_acquire();
  if (!guard) return;
  ++sweeps_;
  note_completed(requests_.test_some());
}

void MpiTransport::note_completed(std::size_t count) {
  in_flight_ -= count;
  for (std::size_t i = 0; i < count; ++i) {
    Pending& pending = pending_[requests_.index_of(i)];
    if (requests_.truncated(i)) continue;
    pending.completed = true;
    if (pending.receives) pending.bytes = requests_.message_info(i).bytes;
  }
}

bool MpiTransport::cancel(Ticket ticket) {
  if (pending_[ticket].completed) return false;
  const MpiLock::Guard guard = comms_->lock().acquire();
  if (!mpi::cancel(requests_[ticket])) return false;
  --in_flight_;
  release(ticket);
  return true;
}

void MpiTransport::send_control(int member, std::string_view text) {
  const MpiLock::Guard guard = comms_->lock().acquire();
  has_control_messages_ = true;
  pending_sends_.send(comms_->comm(Channel::kCollective), worker_of(member), tag_to(member, kControlTag),
                      std::as_bytes(std::span(text)));
}

std::optional<Transport::ControlMessage> MpiTransport::receive_control() {
  const MpiLock::Guard guard = comms_->lock().try_acquire();
  if (!guard) return std::nullopt;
  static_cast<void>(pending_sends_.advance());
  MPI_Comm comm = comms_->comm(Channel::kCollective);
  for (int number = 0; number < comms_->members_per_worker(); ++number) {
    const int tag = comms_->tag(group_, number, ancestor_rank_, kControlTag);
    const std::optional<MessageInfo> info = iprobe_any(tag, comm);
    if (!info) continue;
    has_control_messages_ = true;
    std::string text(info->bytes, '\0');
    recv(text.data(), to_byte_count(text.size()), MPI_BYTE, info->source, tag, comm);
    if (const auto from = member_at(info->source * comms_->members_per_worker() + number))
      return ControlMessage{*from, std::move(text)};
    // Otherwise it is from a member of a former group with this number, which told this member too late.
  }
  return std::nullopt;
}

std::optional<int> MpiTransport::member_at(int ancestor_rank) const {
  if (ancestor_ranks_.empty()) return ancestor_rank;
  const auto at = std::ranges::find(ancestor_ranks_, ancestor_rank);
  if (at == ancestor_ranks_.end()) return std::nullopt;
  return static_cast<int>(at - ancestor_ranks_.begin());
}

std::unique_ptr<Transport> MpiTransport::split(std::span<const int> members, const ContextId& id) {
  return std::unique_ptr<Transport>(new MpiTransport(*this, members, id));
}

}  // namespace cohort::mpi
