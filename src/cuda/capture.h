// The capture that a GPU is in, and what of its memory the graph keeps. While a GPU is captured its compute
// stream neither gives nor takes memory: what is made comes from another stream, and what is released
// stays, since the graph uses both in each launch.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include <cohort/cuda/event.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/allocator.h>

#include "calls.h"
#include "graph_part.h"

namespace cohort::cuda {

class Capture {
 public:
  /// Begins. @throws WrongContext when the GPU is in one already.
  [[nodiscard]] static std::shared_ptr<Capture> begin(Device device);
  /// The one that the GPU is in, or null.
  [[nodiscard]] static std::shared_ptr<Capture> of(Device device);

  Capture(Device device, const Stream& memory_stream);
  ~Capture();  ///< of one that has not ended throws away what it holds

  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void add(std::shared_ptr<GraphPart> part);
  void keep(std::shared_ptr<const void> memory);

  /// No thread adds anything any more.
  [[nodiscard]] cudaGraph_t end();

  [[nodiscard]] Device device() const noexcept { return device_; }
  /// Marks what was queued on the compute stream before.
  [[nodiscard]] const Event& earlier() const noexcept { return earlier_; }
  /// Where memory comes from meanwhile; the compute stream goes on behind it in the end.
  [[nodiscard]] const Stream& memory_stream() const noexcept { return memory_stream_; }
  [[nodiscard]] const std::vector<std::shared_ptr<GraphPart>>& parts() const noexcept { return parts_; }
  [[nodiscard]] std::vector<std::shared_ptr<const void>> take_memory() noexcept { return std::move(memory_); }

 private:
  Device device_;
  const Stream& memory_stream_;
  Event earlier_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<GraphPart>> parts_;
  std::vector<std::shared_ptr<const void>> memory_;
};

/// Memory of the GPU from its pool, for any stream that the compute stream is ordered with.
[[nodiscard]] std::shared_ptr<const Buffer> allocate_from_pool(std::size_t bytes, Device device);

/// For what a graph cannot hold. @throws WrongContext, saying so of `what`, while the GPU is captured.
void require_not_captured(Device device, std::string_view what);

}  // namespace cohort::cuda
