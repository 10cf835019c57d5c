// How collectives behave. A strategy and a communicator take options for all of their
// calls, and most functions of a strategy for one call.
//
// Each option comes from the first of these that sets it: the options given to a strategy's function for one
// call, those of the strategy or communicator, the environment (COHORT_*), the library's own choice (the cost
// model). Functions of a communicator take CallOptions instead, of which only the time-out is also here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <cohort/base/deadline.h>

namespace cohort {

/// How data moves between nodes. Within a node it always moves through shared memory.
enum class CommunicationImplementation : std::uint8_t {
  kAuto,  ///< the one that is expected to be the fastest
  kRing,  ///< rings, for all data that does not piggyback on the roll call
  kNccl,  ///< NCCL among GPUs; CPU devices use rings
};

/// `auto`, `ring` or `nccl`.
[[nodiscard]] std::string_view to_string(CommunicationImplementation implementation) noexcept;

/// The inverse of `to_string`, in any case. @throws InvalidArgument listing the names.
[[nodiscard]] CommunicationImplementation parse_communication_implementation(std::string_view name);

struct CallHooks;

struct CommunicationOptions {
  /// How long a collective waits for its members; 0 waits for ever. Unset: COHORT_COLLECTIVE_TIMEOUT_SECONDS.
  std::optional<double> timeout_seconds = {};

  /// How many bytes of a list of tensors share a collective. 0: small tensors go together, large ones
  /// alone. Above 0: tensors of one dtype fill a pack until it is larger than this. All workers must
  /// choose alike.
  std::size_t bytes_per_pack = 0;

  /// Reductions give the same bits for the same inputs by rank, whatever the placement: threads or processes,
  /// one node or several, in place or not, packed or not. Floating-point sums and products are then combined
  /// from the first rank to the last between nodes too, which moves more bytes where nodes have several
  /// members. All workers must choose alike.
  bool reproducible = false;

  /// All members must choose alike; that they do is checked.
  CommunicationImplementation implementation = CommunicationImplementation::kAuto;

  /// Are told of each call of a communicator, and of those of groups that it is split into; null: none. Those
  /// of the communicator count, whatever the options of a call say. Borrowed: they outlive the communicators,
  /// strategies and Works that have them. See call_hooks.h.
  const CallHooks* hooks = nullptr;

  /// In broadcast, reduce, gather and scatter of up to 1 KiB of a member, those that only send end their part
  /// before the others have come, as with the eager protocol of an MPI; an error of the call then reaches
  /// them in a later one. For communicators of one node without a tree (see docs/collectives.md). All members
  /// must choose alike.
  bool eager = false;

  /// Called by a thread that waits in a call for other members, every few microseconds: for what it must move
  /// on meanwhile, such as the messages of another library. Such a thread does not sleep. Must not throw, nor
  /// call the communicator. Null: none. Not part of what members agree on.
  void (*while_waiting)() = nullptr;

  /// These options with the fields of `other` that were set: a time-out (also 0), packs above 0, an
  /// implementation that is not kAuto.
  [[nodiscard]] CommunicationOptions merge(const CommunicationOptions& other) const;

  /// @throws InvalidArgument for a negative time-out or a negative number of bytes.
  void validate() const;

  /// How long a collective waits, whether or not that was set here; 0: for ever.
  [[nodiscard]] std::chrono::duration<double> timeout() const;

  /// The deadline of a collective that starts now. @throws InvalidArgument as `validate`.
  [[nodiscard]] Deadline deadline() const;
};

}  // namespace cohort
