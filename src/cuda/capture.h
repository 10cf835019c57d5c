// The capture of a GPU into a graph, and who takes part in it: objects that queue work of their own, and the
// memory of the GPU's pool. During a capture the compute stream neither
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
#include <cohort/device/device.h>

#include "calls.h"

namespace cohort::cuda {

// ---- objects that queue work ----

/// A GraphPart takes part in a capture, and in the launches of the graph, besides the compute stream of the
/// GPU: for objects that queue work on streams of their own and watch over it. The graph owns its parts,
/// which are destroyed after it.
class GraphPart {
 public:
  virtual ~GraphPart() = default;

  /// Called when the captured function has ended, perhaps by an exception. Returns when no thread of this
  /// part adds to the capture any more, and the compute stream waits for the part's streams.
  virtual void conclude() = 0;

  /// Called before and after each launch; `launched` only when the launch has succeeded.
  virtual void prepare_launch() = 0;
  virtual void launched() = 0;
};

/// An object whose threads queue work on a GPU. A graph must not be touched by two threads at once, so work
/// that was called for before a capture is on the GPU before the capture begins.
class QueuesWork {
 public:
  virtual ~QueuesWork() = default;
  virtual void wait_until_empty() = 0;
};

/// From now on each capture of the GPU waits for `object`, as long as there is one, before it begins.
void wait_before_captures(Device device, std::weak_ptr<QueuesWork> object);

/// Whether the GPU's compute stream is being captured into a graph. Any thread may ask.
[[nodiscard]] bool is_captured(Device device);

/// Adds a part to the current capture of the GPU.
void take_part(Device device, std::shared_ptr<GraphPart> part);

/// Makes the compute stream wait for `event`, which is not part of the GPU's current capture, when the
/// capture has ended.
void wait_after_capture(const Event& event);

/// For operations that a graph cannot hold. @throws WrongContext, naming `what`, while the GPU is captured.
void require_not_captured(Device device, std::string_view what);

// ---- the capture itself ----

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

// ---- memory of the GPU's pool ----

/// For any stream that the compute stream is ordered with.
[[nodiscard]] std::shared_ptr<const Buffer> allocate_from_pool(std::size_t bytes, Device device);

/// The pool gives back what it keeps, once everything queued has been done: for allocations outside the pool.
void empty_pool(Device device);

/// CUDA's pools are closed to other GPUs at first: copies between two GPUs then go through the host, and a
/// kernel that uses another GPU's memory, as NCCL's do within a process, fails.
///
/// From now on `peer` may use the memory of `owner`'s pool in place, if it reaches that GPU at all. Costs
/// memory on both, so it is done only for GPUs that work together, once. Any thread may call it.
void open_memory(Device owner, Device peer);

}  // namespace cohort::cuda
