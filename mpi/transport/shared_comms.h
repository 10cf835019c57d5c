// What the transports of one process's members share: two MPI communicators of their own, so
// that nothing matches what others send. To MPI the members of a process all have its rank;
// tags tell them apart.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "../calls.h"
#include "../environment.h"
#include "collective/network/transport.h"

namespace cohort::mpi {

// Up to its eager limit MPI delivers a message without waiting for its receiver to call MPI. Longer ones wait
// for a member that may be computing, so long collectives go in messages below it.

/// Bytes of the longest message of a long collective, from what the library says of its limit over TCP,
/// which is the lowest of all networks. Where it says nothing, 56 KiB, below the usual limit of 64 KiB.
[[nodiscard]] std::size_t longest_eager_message();

/// The same from that limit: the library's headers count in it.
[[nodiscard]] std::size_t longest_message_below(std::size_t limit) noexcept;

/// Of control messages, which need no receive.
inline constexpr int kControlTag = Transport::kLargestTag + 1;

class SharedComms {
 public:
  /// Collective over `comm`, and blocks in MPI: all workers must be known to be here. Each has `members`.
  /// `neighbours_are_apart`: workers of one machine are nodes of their own, since they share no memory.
  /// @throws Unimplemented for more members than MPI's tags can tell apart.
  SharedComms(std::shared_ptr<MpiEnvironment> environment, MPI_Comm comm, int members,
              bool neighbours_are_apart);
  ~SharedComms();

  SharedComms(const SharedComms&) = delete;
  SharedComms& operator=(const SharedComms&) = delete;

  [[nodiscard]] MpiLock& lock() const noexcept { return environment_->lock(); }
  /// The longest message that none of the workers' MPI keeps back until it is received.
  [[nodiscard]] std::size_t message_bytes() const noexcept { return message_bytes_; }
  [[nodiscard]] int members_per_worker() const noexcept { return members_; }
  [[nodiscard]] int workers() const noexcept { return workers_; }
  [[nodiscard]] bool neighbours_are_apart() const noexcept { return neighbours_are_apart_; }
  [[nodiscard]] const Operators& operators() const noexcept { return environment_->operators(); }

  [[nodiscard]] MPI_Comm comm(Transport::Channel channel) const noexcept {
    return channel == Transport::Channel::kMessage ? messages_.get() : collectives_.get();
  }
  [[nodiscard]] int worker_of(int member) const noexcept { return member / members_; }

  /// How many groups, the whole included, tags can tell apart.
  [[nodiscard]] std::int64_t groups() const noexcept { return groups_; }

  /// What a message between two members of a group is tagged with.
  [[nodiscard]] int tag(int group, int from, int to, int tag) const noexcept {
    return ((group * members_ + from % members_) * members_ + to % members_) * (kControlTag + 1) + tag;
  }

  /// Something may still be on its way: the communicators are never freed.
  void leave_open() noexcept { left_open_ = true; }

 private:
  std::shared_ptr<MpiEnvironment> environment_;
  int members_;
  int workers_ = 1;
  bool neighbours_are_apart_;
  std::int64_t groups_ = 1;
  Comm collectives_;
  Comm messages_;
  std::size_t message_bytes_ = 0;
  std::atomic<bool> left_open_{false};
};

}  // namespace cohort::mpi
