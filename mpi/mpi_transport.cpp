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

Transport::Ticket MpiTransport::file(const Pending& pending) {
  if (free_.empty()) {
    pending_.push_back(pending);
    free_.reserve(pending_.size());
    return static_cast<Ticket>(pending_.size() - 1);
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  pending_[ticket] = pending;
  return ticket;
}

void MpiTransport::release(Ticket ticket) {
  pending_[ticket] = {};
  free_.push_back(ticket);
}

Transport::Ticket MpiTransport::send(const Address& to, std::span<const std::byte> data) {
  const Gate::Pass pass = runtime_->gate().enter();
  MPI_Request request =
      isend(data.data(), to_count(data.size()), MPI_BYTE, to.member, to.tag, comm_of(to.channel));
  return file({request, false, data.size()});
}

Transport::Ticket MpiTransport::receive(const Address& from, std::span<std::byte> room) {
  const Gate::Pass pass = runtime_->gate().enter();
  MPI_Request request =
      irecv(room.data(), to_count(room.size()), MPI_BYTE, from.member, from.tag, comm_of(from.channel));
  return file({request, true, 0});
}

std::optional<std::size_t> MpiTransport::poll(Ticket ticket) {
  const Gate::Pass pass = runtime_->gate().try_enter();
  if (!pass) return std::nullopt;
  Pending& pending = pending_[ticket];
  Envelope envelope;
  if (!test(pending.request, pending.receives ? &envelope : nullptr)) return std::nullopt;
  const std::size_t bytes = pending.receives ? envelope.bytes : pending.bytes;
  release(ticket);
  return bytes;
}

void MpiTransport::cancel(Ticket ticket) {
  const Gate::Pass pass = runtime_->gate().enter();
  mpi::cancel(pending_[ticket].request);
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

}  // namespace cohort::mpi
