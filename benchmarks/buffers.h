// The buffers of the libraries. Cohort's are tensors: in its own memory, in ordinary memory or on a GPU. The
// peer has ordinary memory, or shares Cohort's tensors where these are on a GPU. In place, the input and the
// output of a library share one piece of memory.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include <cohort/device/tensor.h>

#include "collective.h"
#include "private_memory.h"
#include "run_context.h"
#include "team.h"

namespace cohort::bench {

/// One member's buffers for the peer.
struct PeerBuffers {
  std::span<std::byte> input;
  std::span<std::byte> output;
  std::unique_ptr<PrivateMemory> input_memory;
  std::unique_ptr<PrivateMemory> output_memory;  ///< null in place
};

struct Buffers {
  Tensor input;        ///< Cohort's
  Tensor output;       ///< Cohort's
  Tensor host_input;   ///< what the host writes: the same tensor, or the one that is copied to the GPU
  Tensor host_output;  ///< what the host reads
  std::optional<PeerBuffers> peer;
};

struct BufferRequest {
  const Collective* collective = nullptr;
  Layout layout = {};
  bool in_place = false;
  bool with_peer = false;  ///< the peer needs buffers of its own
  Device device = {};      ///< where Cohort's are
  int members_on_node = 1;
};

/// Collective: if a member failed alone, the others would wait for it.
/// @throws AgreedError on all members when one of them has too little memory.
[[nodiscard]] Buffers allocate_on_all_members(const BufferRequest& request, const RunOptions& options,
                                              const Team& team);

/// A tensor of one dimension in the CPU's memory of the kind that `options` names.
/// @throws Unavailable or std::bad_alloc when memory is short.
[[nodiscard]] Tensor make_tensor(std::size_t elements, const RunOptions& options);

}  // namespace cohort::bench
