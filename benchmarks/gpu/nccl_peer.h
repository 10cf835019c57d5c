// NCCL as the peer: its functions, called as a program without Cohort would call them, on the memory
// that Cohort's calls work on and on the stream on which both are timed.
#pragma once

#include <memory>

#include <cohort/collective/communicator.h>

#include "peer.h"
#include "team.h"

namespace cohort::bench {

/// For the member that has `communicator`, on its GPU. Collective over the members.
/// @throws AgreedError on all of them when NCCL cannot be used, or does not connect them.
[[nodiscard]] std::unique_ptr<const PeerLibrary> make_nccl_peer(Communicator& communicator, const Team& team,
                                                                Device device);

}  // namespace cohort::bench
