// The library that Cohort is compared with, as one member of a run has it. It makes the same calls as
// Cohort on the same kind of memory. Calls are prepared before they are timed, so that nothing but the
// library's own function runs then.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <cohort/collective/communicator.h>
#include <cohort/collective/reduce_op.h>
#include <cohort/device/dtype.h>

#include "collective.h"
#include "team.h"

namespace cohort::bench {

/// Which library it is.
enum class Peer {
  kNone,
  kMpi,   ///< over memory of the host
  kNccl,  ///< over memory of GPUs
};

[[nodiscard]] constexpr std::string_view to_string(Peer peer) {
  switch (peer) {
    case Peer::kNone: return "none";
    case Peer::kMpi: return "mpi";
    case Peer::kNccl: return "nccl";
  }
  return "unknown";
}

/// The peer's function for `collective`.
[[nodiscard]] inline std::string_view function_of(Peer peer, const Collective& collective) {
  return peer == Peer::kNccl ? collective.nccl : collective.peer;
}

struct PeerCall {
  const Collective* collective = nullptr;
  Role role;
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool in_place = false;
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

class MpiTeam;

class PeerLibrary {
 public:
  virtual ~PeerLibrary() = default;

  /// Empty when it can make the call; otherwise what is missing, for example `MPI has no type for float16`.
  /// The memory does not matter.
  [[nodiscard]] virtual std::string why_not(const PeerCall& call) const = 0;

  /// The function that makes the call. The library can: `why_not` is empty.
  [[nodiscard]] virtual std::function<void()> prepare(const PeerCall& call) const = 0;
};

/// MPI as the peer. `team` outlives it, and the calls that it prepares.
[[nodiscard]] std::unique_ptr<const PeerLibrary> make_mpi_peer(const MpiTeam& team);

/// NCCL as the peer: its functions, called as a program without Cohort would call them, on the memory that
/// Cohort's calls work on and on the stream on which both are timed. For the member that has `communicator`,
/// on its GPU. Collective over the members.
/// @throws AgreedError on all of them when NCCL cannot be used, or does not connect them.
[[nodiscard]] std::unique_ptr<const PeerLibrary> make_nccl_peer(Communicator& communicator, const Team& team,
                                                                Device device);

}  // namespace cohort::bench
