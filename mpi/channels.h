// What the transports of one process's members share: two MPI communicators of their own, so
// that nothing matches what others send. Members of one process have its rank in the job;
// tags tell them apart.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <cohort/collective/transport.h>

#include "calls.h"
#include "runtime.h"

namespace cohort::mpi {

/// Of a note that needs no receive.
inline constexpr int kNoteTag = Transport::kLargestTag + 1;

class Channels {
 public:
  /// Collective over `comm`, and blocks in MPI: all workers must be known to be here. Each has `members`.
  /// @throws Unimplemented for more members than MPI's tags can tell apart.
  Channels(std::shared_ptr<Runtime> runtime, MPI_Comm comm, int members);
  ~Channels();

  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  /// Channels of these workers alone, numbered anew in this order. Collective over them, and blocks in MPI.
  /// @throws Unimplemented where workers have several members, of which not all need be in the group.
  [[nodiscard]] std::shared_ptr<Channels> split(std::span<const int> workers) const;

  [[nodiscard]] Gate& gate() const noexcept { return runtime_->gate(); }
  /// The longest message that none of the workers' MPI keeps back until it is received.
  [[nodiscard]] std::size_t message_bytes() const noexcept { return message_bytes_; }
  [[nodiscard]] int members_per_worker() const noexcept { return members_; }

  [[nodiscard]] MPI_Comm comm(Transport::Channel channel) const noexcept {
    return channel == Transport::Channel::kMessage ? messages_.get() : collectives_.get();
  }
  [[nodiscard]] int worker_of(int member) const noexcept { return member / members_; }

  /// What a message between two members is tagged with.
  [[nodiscard]] int tag(int from, int to, int tag) const noexcept {
    return (from % members_ * members_ + to % members_) * (kNoteTag + 1) + tag;
  }

  /// Something may still be on its way: the communicators are never freed.
  void leave_open() noexcept { left_open_ = true; }

 private:
  /// Of workers with a member each.
  Channels(std::shared_ptr<Runtime> runtime, Comm collectives, Comm messages, std::size_t message_bytes)
      : runtime_(std::move(runtime)),
        members_(1),
        collectives_(std::move(collectives)),
        messages_(std::move(messages)),
        message_bytes_(message_bytes) {}

  std::shared_ptr<Runtime> runtime_;
  int members_;
  Comm collectives_;
  Comm messages_;
  std::size_t message_bytes_ = 0;
  std::atomic<bool> left_open_{false};
};

}  // namespace cohort::mpi
