// An Algorithm executes one kind of collective, by messages among the members and nothing
// else. Derive from it and register an object under a name before communicators are made.
// Calls of its kind then use it where the cost formulas expect it to be the fastest, or
// where COHORT_ALGORITHM names it.
//
// Cohort has checked that all members make the same call before an algorithm begins, and
// watches over it: members that are missing, dead or have failed end it on all members.
// What `execute` throws becomes the error of the communicator. Small calls (up to 8 KiB
// on a node, those that piggyback on the roll call between nodes) never use it.
//
// Examples: examples/bruck_all_gather.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>

namespace cohort {

/// What every member knows about a call; the same on all members.
struct CallShape {
  CollectiveKind kind = CollectiveKind::kBarrier;
  DType dtype = DType::kUInt8;
  ReduceOp op = ReduceOp::kSum;
  std::size_t elements = 0;  ///< as in CollectiveCall; where blocks differ, of the longest one
  std::size_t bytes = 0;     ///< that one member contributes: its block, or one for each member
  bool uneven = false;       ///< blocks differ: the call has counts
  int members = 1;
  int nodes = 1;
  int lanes = 0;  ///< members of each node that move a long call between nodes, at most; 0: all
};

/// The machine's speed, for cost formulas: a message takes `latency_seconds + bytes * seconds_per_byte`.
struct CostConstants {
  double latency_seconds = 0;          ///< alpha
  double seconds_per_byte = 0;         ///< beta
  double reduce_seconds_per_byte = 0;  ///< gamma
};

/// The members of a call, as an algorithm sees them. Messages match by sender, receiver and tag, in the
/// order in which they were started, within one call; they never match messages of a program.
class Peers {
 public:
  static constexpr int kLargestTag = 4095;

  virtual ~Peers() = default;
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  /// The node of a member, counted from 0.
  [[nodiscard]] virtual int node_of(int member) const noexcept = 0;

  /// One message. Both sides name the same number of bytes. It starts when it is first resumed, and is
  /// resumed until it has finished. Its memory is a part of the call's own input and output, or `scratch`.
  [[nodiscard]] virtual Task<> send(int to, std::span<const std::byte> data, int tag = 0) = 0;
  [[nodiscard]] virtual Task<> receive(int from, std::span<std::byte> into, int tag = 0) = 0;

  /// Memory for messages, besides the call's own buffers. It outlives a failure that ends the call, since
  /// other members may still read and write it; memory of the algorithm's own would not.
  [[nodiscard]] virtual std::shared_ptr<std::byte> scratch(std::size_t bytes) = 0;

  /// Sends and receives at the same time, with two members or one.
  [[nodiscard]] Task<> exchange(int to, std::span<const std::byte> data, int from, std::span<std::byte> into,
                                int tag = 0);

 protected:
  Peers() = default;
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;

  /// Lower-case letters, digits and underscores.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// The kind of calls that it executes: any but barriers and messages.
  [[nodiscard]] virtual CollectiveKind kind() const noexcept = 0;

  /// Whether it can execute such a call. It must not depend on anything else.
  [[nodiscard]] virtual bool is_legal(const CallShape& /*shape*/) const { return true; }

  /// How long such a call is expected to take, for the comparison with others. It must not depend on
  /// anything else.
  [[nodiscard]] virtual double seconds(const CallShape& shape, const CostConstants& constants) const = 0;

  /// One member's part. Both arguments outlive the task. `call.output` is null where this member gets
  /// no result, and may equal `call.input`. Several calls, of several threads, may be under way.
  [[nodiscard]] virtual Task<> execute(Peers& peers, const CollectiveCall& call) const = 0;

 protected:
  Algorithm() = default;
  Algorithm(const Algorithm&) = default;
  Algorithm& operator=(const Algorithm&) = default;
};

/// Makes it known to the communicators that this process makes later. All members
/// must have registered the same names before they make a communicator together. Any
/// thread may call it.
/// @throws InvalidArgument for a name that is taken or not legal, or a kind that no algorithm has.
void register_algorithm(std::shared_ptr<const Algorithm> algorithm);

}  // namespace cohort
