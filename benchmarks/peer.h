// Which library Cohort is compared with.
#pragma once

#include <string_view>

#include "collective.h"

namespace cohort::bench {

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

}  // namespace cohort::bench
