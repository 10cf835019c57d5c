// The data that one launch of the NCCL stand-in moves between the ranks, and its results.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include <nccl.h>

#include "nccl_arena.h"

namespace nccl_stand_in {

struct Exchange {
  struct Piece {
    int peer = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<Piece> sends;
  std::vector<Piece> receives;
  std::vector<const void*> results;                ///< of reductions
  std::vector<std::function<void()>> conclusions;  ///< from what was received, in order

  void send(int peer, const void* data, std::size_t bytes);
  void receive(int peer, void* data, std::size_t bytes);

  /// Blocks until all of it is through, or the communicator is aborted; true in the first case.
  [[nodiscard]] bool execute(const Arena& arena, const std::atomic<bool>& aborted) const;
};

// The reductions of the NCCL stand-in: in the order of the ranks, 16-bit floats rounded once.

[[nodiscard]] std::size_t size_of(ncclDataType_t type);

/// output[i] = inputs[0][i] op inputs[1][i] op ...; an average is divided by the number of inputs.
void reduce(const std::vector<const std::byte*>& inputs, void* output, std::size_t count, ncclDataType_t type,
            ncclRedOp_t op);

}  // namespace nccl_stand_in
