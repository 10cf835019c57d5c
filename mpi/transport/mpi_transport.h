// A Transport over MPI's non-blocking point-to-point, and MPI's own collectives. The members of a
// communicator are numbered worker by worker, and those of one process share its MPI communicators.
//
// The words are explained in docs/collectives.md.
#pragma once

#include <memory>
#include <vector>

#include "../calls.h"
#include "../messages.h"
#include "collective/network/transport.h"
#include "shared_comms.h"

namespace cohort::mpi {

/// Collectives between the workers by MPI's own algorithms, which a network may carry out itself; with what
/// Cohort promises beyond MPI around them: 16-bit sums rounded once, MEAN, calls in place, the bits of MIN
/// and MAX.
///
/// All members are known to make the same call when one begins. MPI is polled, like everything else that a
/// member waits for.
class MpiCollectives final : public TransportCollectives {
 public:
  explicit MpiCollectives(std::shared_ptr<SharedComms> comms) : comms_(std::move(comms)) {}

  [[nodiscard]] bool is_legal(const CollectiveCall& call) const override;
  [[nodiscard]] bool is_preferred(const CollectiveCall& call, std::size_t bytes) const override;
  [[nodiscard]] Task<> execute(const CollectiveCall& call) override;

 private:
  std::shared_ptr<SharedComms> comms_;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(std::shared_ptr<SharedComms> comms, int rank);
  ~MpiTransport() override;

  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override;
  [[nodiscard]] Ticket receive(const Address& from, std::span<std::byte> room) override;
  [[nodiscard]] std::optional<std::size_t> poll(Ticket ticket) override;
  [[nodiscard]] bool cancel(Ticket ticket) override;
  void send_control(int member, std::string_view text) override;
  [[nodiscard]] std::optional<ControlMessage> receive_control() override;
  [[nodiscard]] ContextIdSet free_context_ids() const override { return context_ids_->free_ids(); }
  [[nodiscard]] std::unique_ptr<Transport> split(std::span<const int> members, const ContextId& id) override;
  [[nodiscard]] bool any_thread() const noexcept override { return comms_->lock().any_thread(); }
  [[nodiscard]] std::size_t message_bytes() const noexcept override { return comms_->message_bytes(); }
  /// MPI's communicator is of all workers, and has one rank for all members of a worker.
  [[nodiscard]] TransportCollectives* collectives() noexcept override {
    return ancestor_ranks_.empty() && comms_->members_per_worker() == 1 ? &collectives_ : nullptr;
  }

 private:
  /// Of a group.
  MpiTransport(const MpiTransport& parent, std::span<const int> members, const ContextId& id);

  struct Pending {
    bool receives = false;
    bool completed = false;
    std::size_t bytes = 0;
    std::uint64_t polled = 0;  ///< the number of the last sweep in which somebody polled it
  };
  [[nodiscard]] Ticket new_ticket(bool receives, std::size_t bytes);
  void release(Ticket ticket) { free_.push_back(ticket); }
  void test(Ticket ticket);
  void sweep();
  void note_completed(std::size_t count);
  void leave_open() noexcept;

  /// The rank of a member of this group in the communicator from which the group descends.
  [[nodiscard]] int ancestor_rank_of(int member) const noexcept {
    return ancestor_ranks_.empty() ? member : ancestor_ranks_[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] std::optional<int> member_at(int ancestor_rank) const;
  [[nodiscard]] int worker_of(int member) const noexcept {
    return comms_->worker_of(ancestor_rank_of(member));
  }
  [[nodiscard]] int tag_to(int member, int tag) const noexcept {
    return comms_->tag(group_, ancestor_rank_, ancestor_rank_of(member), tag);
  }
  [[nodiscard]] int tag_from(int member, int tag) const noexcept {
    return comms_->tag(group_, ancestor_rank_of(member), ancestor_rank_, tag);
  }

  std::shared_ptr<SharedComms> comms_;
  MpiCollectives collectives_;
  std::shared_ptr<ContextIdPool> context_ids_;
  int group_ = 0;
  std::vector<int> ancestor_ranks_;  ///< of the group's members; empty where they are all members
  int ancestor_rank_;                ///< of this member
  RequestSet requests_{0};           ///< by ticket
  std::vector<Pending> pending_;     ///< by ticket
  std::size_t in_flight_ = 0;        ///< requests that MPI has not completed
  std::uint64_t sweeps_ = 1;
  std::vector<Ticket> free_;
  PendingSends pending_sends_;         ///< control messages on their way; guarded by the MpiLock
  bool has_control_messages_ = false;  ///< a control message was sent or has come, and others may follow
};

}  // namespace cohort::mpi
