// The data that one launch of the NCCL stand-in moves between the ranks, and its results.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

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

}  // namespace nccl_stand_in
