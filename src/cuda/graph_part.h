// What takes part in a capture, and in the launches of the graph, beside the compute stream of the GPU:
// whoever queues work on streams of its own, and looks after it. The graph owns its parts, and they go after
// it.
#pragma once

#include <memory>

#include <cohort/cuda/event.h>
#include <cohort/device/device.h>

namespace cohort::cuda {

class GraphPart {
 public:
  virtual ~GraphPart() = default;

  /// The captured function has ended, perhaps by an exception. Returns when no other thread adds to the
  /// capture any more for this part, whose streams the compute stream waits for.
  virtual void conclude() = 0;

  /// Around each launch; `launched` is left out when the launch fails.
  virtual void prepare_launch() = 0;
  virtual void launched() = 0;
};

/// Whether what is queued on the GPU's compute stream becomes part of a graph. Any thread may ask.
[[nodiscard]] bool is_captured(Device device);

/// Adds to the capture that the GPU is in.
void take_part(Device device, std::shared_ptr<GraphPart> part);

/// The compute stream goes on behind `event`, which is no part of the capture that the GPU is in, when that
/// has ended.
void wait_after_capture(const Event& event);

}  // namespace cohort::cuda
