// The memory of the stand-in's GPUs, and which host memory is pinned. Fresh and released memory is
// overwritten, so that reading it gives wrong results.
//
// Each GPU has a pool. As CUDA's, it takes memory from the system when it needs more than it has, keeps what
// is released until the host next waits for something on the GPU, and from then on only as much as it was
// told to. Other GPUs may use its memory once it has been opened to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace gpu_stand_in {

class Memory {
 public:
  /// Never destroyed: tensors may be static.
  [[nodiscard]] static Memory& of_this_process();

  /// Null when the GPU has no more; `pinned` memory is the host's and has no limit.
  [[nodiscard]] void* allocate(std::size_t bytes, int device);
  [[nodiscard]] void* allocate_from_pool(std::size_t bytes, int device);
  [[nodiscard]] void* allocate_pinned(std::size_t bytes);

  /// Releases a block, which counts as used until then. False for an address that is no block's.
  bool release(void* block);

  /// Host memory of the caller's.
  bool pin(void* data, std::size_t bytes);
  bool unpin(void* data);

  struct Place {
    bool pinned = false;  ///< host memory that copies need not stage
    int device = -1;
    bool pool = false;  ///< of the device's pool
  };
  /// Nothing for ordinary host memory.
  [[nodiscard]] std::optional<Place> find(const void* data) const;

  /// Of the GPU, with what its pool keeps.
  [[nodiscard]] std::size_t used(int device) const;

  struct PoolState {
    std::size_t used = 0;
    std::size_t reserved = 0;   ///< taken from the system
    std::size_t threshold = 0;  ///< of what is reserved, this much is kept
  };
  [[nodiscard]] PoolState pool(int device) const;
  void set_threshold(int device, std::size_t bytes);
  /// The host has waited for the GPU: the pool gives back what is over its threshold.
  void trim_pool(int device);
  void trim_pool(int device, std::size_t bytes);

  void open_pool(int device, int peer);
  [[nodiscard]] bool is_open(int device, int peer) const;

  /// Whether kernels on `device` may use what lies there: pinned memory, the GPU's own, and that of other
  /// GPUs, except for pools that have not been opened to it.
  [[nodiscard]] bool reaches(int device, const void* data) const;

 private:
  struct Block {
    std::size_t bytes = 0;
    Place place = {};
    bool own = true;  ///< the stand-in's own memory, not the caller's
  };

  mutable std::mutex mutex_;
  std::map<const std::byte*, Block, std::greater<>>
      blocks_;                       // so that lower_bound is the one that begins before
  std::map<int, std::size_t> used_;  ///< outside the pools
  std::map<int, PoolState> pools_;
  std::set<std::pair<int, int>> open_;  ///< pool, peer
};

}  // namespace gpu_stand_in
