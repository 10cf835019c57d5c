// Copies between ordinary host memory and one GPU, through a ring of pinned blocks that the GPU reads and
// writes by itself. Data for the GPU is copied into the ring, and the caller goes on; data from it passes
// through the ring piece by piece. A block is used again when the GPU has finished with it, so callers wait
// only when the GPU is a whole ring behind. Any thread may copy.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include <cohort/cuda/event.h>
#include <cohort/cuda/stream.h>

#include "device/device_runtime.h"

namespace cohort::cuda {

class StagingRing {
 public:
  explicit StagingRing(const Stream& stream);
  ~StagingRing();

  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  /// `copy.from` is ordinary host memory; it has been read on return.
  void upload(const BlockCopy& copy);

  /// `copy.to` is ordinary host memory; it has been written on return.
  void download(const BlockCopy& copy);

 private:
  struct Block {
    explicit Block(Device device);
    std::byte* memory;
    Event done;
  };

  /// Room for `bytes` in the ring, in the block that is current from now on. May wait for the GPU.
  [[nodiscard]] std::byte* take(std::size_t bytes);

  const Stream& stream_;
  std::mutex mutex_;
  std::vector<Block> blocks_;
  std::size_t current_ = 0;
  std::size_t used_ = 0;  ///< bytes of the current block
};

}  // namespace cohort::cuda
