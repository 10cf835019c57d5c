// The memory of the stand-in's GPUs, and which host memory is pinned. Fresh and released memory is
// overwritten, so that reading it gives wrong results.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

namespace gpu_stand_in {

class Memory {
 public:
  /// Never destroyed: tensors may be static.
  [[nodiscard]] static Memory& of_this_process();

  /// Null when the GPU has no more; `pinned` memory is the host's and has no limit.
  [[nodiscard]] void* allocate(std::size_t bytes, int device);
  [[nodiscard]] void* allocate_pinned(std::size_t bytes);

  /// Releases a block, which counts as used until then. False for an address that is no block's.
  bool release(void* block);

  /// Host memory of the caller's.
  bool pin(void* data, std::size_t bytes);
  bool unpin(void* data);

  struct Place {
    bool pinned = false;  ///< host memory that copies need not stage
    int device = -1;
  };
  /// Nothing for ordinary host memory.
  [[nodiscard]] std::optional<Place> find(const void* data) const;

  [[nodiscard]] std::size_t used(int device) const;

 private:
  struct Block {
    std::size_t bytes = 0;
    Place place = {};
    bool own = true;  ///< the stand-in's own memory, not the caller's
  };

  mutable std::mutex mutex_;
  std::map<const std::byte*, Block, std::greater<>>
      blocks_;  // so that lower_bound is the one that begins before
  std::map<int, std::size_t> used_;
};

}  // namespace gpu_stand_in
