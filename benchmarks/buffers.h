// What the libraries work on: Cohort on tensors in its own memory, the peer on ordinary memory.
#pragma once

#include <optional>

#include "collective.h"
#include "peer_buffer.h"

namespace cohort::bench {

struct Buffers {
  Tensor input;
  Tensor output;
  std::optional<PeerBuffer> peer_input;
  std::optional<PeerBuffer> peer_output;
};

/// Collective, for a rank that ran out of memory alone would leave the others waiting.
/// @throws AgreedError on all ranks when one of them has too little memory.
[[nodiscard]] Buffers allocate_on_all_ranks(const Collective& collective, const Problem& problem,
                                            bool with_peer, const MpiGroup& group);

}  // namespace cohort::bench
