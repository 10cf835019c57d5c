// A Transport over MPI's non-blocking point-to-point: one member of a communicator is one
// process, and its rank in MPI's is its rank in ours. Each transport has MPI
// communicators of its own, so nothing matches what others send.
#pragma once

#include <memory>
#include <vector>

#include <cohort/collective/transport.h>

#include "calls.h"
#include "outbox.h"
#include "runtime.h"

namespace cohort::mpi {

class MpiTransport final : public Transport {
 public:
  /// Collective over `comm`, and blocks in MPI: all members must be known to be here.
  MpiTransport(std::shared_ptr<Runtime> runtime, MPI_Comm comm);
  ~MpiTransport() override;

  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override;
  [[nodiscard]] Ticket receive(const Address& from, std::span<std::byte> room) override;
  [[nodiscard]] std::optional<std::size_t> poll(Ticket ticket) override;
  void cancel(Ticket ticket) override;
  void tell(int member, std::string_view note) override;
  [[nodiscard]] std::optional<Note> hear() override;
  /// Blocks in MPI.
  [[nodiscard]] std::unique_ptr<Transport> split(std::span<const int> members) override;
  [[nodiscard]] bool any_thread() const noexcept override { return runtime_->gate().any_thread(); }

 private:
  struct Pending {
    bool receives = false;
    bool completed = false;
    std::size_t bytes = 0;
    std::uint64_t polled = 0;  ///< the sweep since which nobody has asked
  };
  [[nodiscard]] MPI_Comm comm_of(Channel channel) const noexcept {
    return channel == Channel::kMessage ? messages_.get() : collectives_.get();
  }
  [[nodiscard]] Ticket new_ticket(bool receives, std::size_t bytes);
  void release(Ticket ticket) { free_.push_back(ticket); }
  void sweep();
  void leak() noexcept;

  std::shared_ptr<Runtime> runtime_;
  Comm collectives_;
  Comm messages_;
  RequestSet requests_{0};        ///< by ticket
  std::vector<Pending> pending_;  ///< by ticket
  std::uint64_t sweeps_ = 1;
  std::vector<Ticket> free_;
  Outbox outbox_;       ///< notes on their way; guarded by the gate
  bool noted_ = false;  ///< a note was sent or has come, and others may follow
};

}  // namespace cohort::mpi
