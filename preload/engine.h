// The ranks of an MPI program on one node as workers of Cohort: what the shims have in common, without MPI.
// The shim owns the NodeRanks, which outlives the communicators made of it; any thread may make one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/communicator.h>
#include <cohort/rendezvous/session.h>

namespace cohort::preload {

/// Sends bytes from the node's first rank to the others: of equal length on all of them.
using Broadcast = std::function<void(std::span<std::byte>)>;

/// The ranks of one node, which watch each other and share memory.
class NodeRanks {
 public:
  /// Collective over the ranks of the node. @throws as rendezvous::Session.
  NodeRanks(int rank, int size, const Broadcast& broadcast);

  /// The same on all ranks of the node, and unlike that of every other node.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] int rank() const { return session_->rank(); }

  /// Collective over `ranks`, in this order; `name` as of Group::make_group. Null, on all of them, where they
  /// do not share memory. A thread that waits in its calls calls `while_waiting`.
  /// @throws as Group::make_group and make_communicator.
  [[nodiscard]] std::unique_ptr<Communicator> make_communicator(std::span<const int> ranks,
                                                                std::string_view name,
                                                                void (*while_waiting)()) const;

 private:
  std::uint64_t id_ = 0;
  std::unique_ptr<rendezvous::Session> session_;
};

/// Which collectives Cohort carries out: COHORT_MPI_CALLS.
enum class ServedCalls {
  kNone,
  kExact,  ///< whose results cannot depend on who carries them out
  kAll,
};
/// @throws InvalidArgument for a setting that is wrong, whichever.
[[nodiscard]] ServedCalls served_calls();

/// Up to so many bytes that a member contributes, those that only send do not wait in a rooted collective.
[[nodiscard]] std::size_t eager_bytes(const Communicator& communicator) noexcept;

/// The MPI is about to carry out a collective of these members, its function `name`; it stays valid.
void note_call_of_mpi(Communicator& communicator, const char* name) noexcept;
/// The MPI has refused the latest one, to this member alone.
void take_back_call_of_mpi(Communicator& communicator) noexcept;

/// A call with these and nothing else.
[[nodiscard]] inline CollectiveCall call_of(CollectiveKind kind, const void* input, void* output,
                                            std::size_t elements, DType dtype = DType::kUInt8,
                                            int root = 0) noexcept {
  CollectiveCall call;
  call.kind = kind;
  call.dtype = dtype;
  call.elements = elements;
  call.root = root;
  call.input = static_cast<const std::byte*>(input);
  call.output = static_cast<std::byte*>(output);
  return call;
}

/// Makes a call whose arguments were checked.
void carry_out(Communicator& communicator, const CollectiveCall& call);

}  // namespace cohort::preload
