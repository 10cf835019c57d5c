#include "mpi_transport.h"

#include <exception>
#include <limits>

#include <cohort/base/error.h>

namespace cohort::mpi {
namespace {

constexpr int kNoteTag = Transport::kLargestTag + 1;

int to_count(std::size_t bytes) {
  COHORT_CHECK(bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  return static_cast<int>(bytes);
}

}  // namespace

MpiTransport::MpiTransport(std::shared_ptr<Runtime> runtime, MPI_Comm comm) : runtime_(std::move(runtime)) {
  const Gate::Pass pass = runtime_->gate().enter();
  collectives_ = Comm::duplicate(comm);
  messages_ = Comm::duplicate(comm);
}

MpiTransport::~MpiTransport() {
  try {
    const Gate::Pass pass = runtime_->gate().enter();
    // MPI gives the identity of a communicator that is freed to the next one, which would then get what
    // is still on its way.
    if (noted_ || free_.size() < pending_.size()) leak();
    collectives_ = Comm();
    messages_ = Comm();
  } catch (const std::exception&) {
    leak();  // this thread may not call MPI
  }
}

void MpiTransport::leak() noexcept {
  collectives_.leak();
  messages_.leak();
  outbox_.leak();
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
  return ticket;
}

Transport::Ticket MpiTransport::send(const Address& to, std::span<const std::byte> data) {
  const Gate::Pass pass = runtime_->gate().enter();
  const Ticket ticket = new_ticket(false, data.size());
  requests_[ticket] =
      isend(data.data(), to_count(data.size()), MPI_BYTE, to.member, to.tag, comm_of(to.channel));
  return ticket;
}

Transport::Ticket MpiTransport::receive(const Address& from, std::span<std::byte> room) {
  const Gate::Pass pass = runtime_->gate().enter();
  const Ticket ticket = new_ticket(true, 0);
  requests_[ticket] =
      irecv(room.data(), to_count(room.size()), MPI_BYTE, from.member, from.tag, comm_of(from.channel));
  return ticket;
}

// MPI looks at all its connections whenever it is asked about anything, so it is asked about all transfers
// at once: by the first poll of a ticket that was polled before and has not completed since.
std::optional<std::size_t> MpiTransport::poll(Ticket ticket) {
  Pending& pending = pending_[ticket];
  if (!pending.completed && pending.polled == sweeps_) sweep();
  pending.polled = sweeps_;
  if (!pending.completed) return std::nullopt;
  release(ticket);
  return pending.bytes;
}

void MpiTransport::sweep() {
  const Gate::Pass pass = runtime_->gate().try_enter();
  if (!pass) return;
  ++sweeps_;
  const std::size_t completed = requests_.test_some();
  for (std::size_t i = 0; i < completed; ++i) {
    Pending& pending = pending_[requests_.place(i)];
    if (requests_.truncated(i)) continue;
    pending.completed = true;
    if (pending.receives) pending.bytes = requests_.envelope(i).bytes;
  }
}

void MpiTransport::cancel(Ticket ticket) {
  const Gate::Pass pass = runtime_->gate().enter();
  mpi::cancel(requests_[ticket]);
  release(ticket);
}

void MpiTransport::tell(int member, std::string_view note) {
  const Gate::Pass pass = runtime_->gate().enter();
  noted_ = true;
  outbox_.send(collectives_.get(), member, kNoteTag, std::as_bytes(std::span(note)));
}

std::optional<Transport::Note> MpiTransport::hear() {
  const Gate::Pass pass = runtime_->gate().try_enter();
  if (!pass) return std::nullopt;
  static_cast<void>(outbox_.advance());
  const std::optional<Envelope> envelope = iprobe_any(kNoteTag, collectives_.get());
  if (!envelope) return std::nullopt;
  noted_ = true;
  Note note{envelope->source, std::string(envelope->bytes, '\0')};
  recv(note.text.data(), to_count(note.text.size()), MPI_BYTE, envelope->source, kNoteTag,
       collectives_.get());
  return note;
}

std::unique_ptr<Transport> MpiTransport::split(std::span<const int> members) {
  Comm comm;
  {
    const Gate::Pass pass = runtime_->gate().enter();
    comm = Comm::of_members(collectives_.get(), members);
  }
  auto transport = std::make_unique<MpiTransport>(runtime_, comm.get());
  const Gate::Pass pass = runtime_->gate().enter();
  comm = Comm();
  return transport;
}

}  // namespace cohort::mpi
