// A GraphPart takes part in a capture, and in the launches of the graph, besides the compute stream of the
// GPU: for objects that queue work on streams of their own and watch over it. The graph owns its parts, which
// are destroyed after it.
#pragma once

#include <memory>

#include <cohort/cuda/event.h>
#include <cohort/device/device.h>

namespace cohort::cuda {

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

}  // namespace cohort::cuda
