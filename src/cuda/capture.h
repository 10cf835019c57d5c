// The capture of a GPU, and the memory that its graph keeps. During a capture the compute stream neither
// allocates nor releases memory: new tensors come from another stream, and released ones are kept, since the
// graph uses both in each launch.
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
  /// Begins a capture. @throws WrongContext when the GPU is being captured already.
  [[nodiscard]] static std::shared_ptr<Capture> begin(Device device);
  /// The current capture of the GPU, or null.
  [[nodiscard]] static std::shared_ptr<Capture> of(Device device);
  /// Has `event` mark what `stream` holds now, unless the GPU is being captured: then it returns the capture.
  /// None begins in between.
  [[nodiscard]] static std::shared_ptr<Capture> record_outside(const Event& event, const Stream& stream);

  Capture(Device device, const Stream& memory_stream);
  ~Capture();  ///< of one that has not ended throws away what it holds

  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void add(std::shared_ptr<GraphPart> part);
  void keep(std::shared_ptr<const void> memory);

  /// Called when no thread adds to the capture any more.
  [[nodiscard]] cudaGraph_t end();

  [[nodiscard]] Device device() const noexcept { return device_; }
  /// Marks the work that was queued on the compute stream before the capture.
  [[nodiscard]] const Event& earlier() const noexcept { return earlier_; }
  /// The stream that allocates memory during the capture; at the end, the compute stream waits for it.
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

/// The pool gives back what it keeps, once everything queued has been done: for allocations outside the pool.
void empty_pool(Device device);

/// For operations that a graph cannot hold. @throws WrongContext, naming `what`, while the GPU is captured.
void require_not_captured(Device device, std::string_view what);

}  // namespace cohort::cuda
