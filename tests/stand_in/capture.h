// Capture of streams into graphs. Work put on a captured stream becomes a node of the graph, after earlier
// nodes on that stream and those that it was told to wait for. A launch runs all nodes as one task of its
// stream, in an order that the graph allows: that of the calls in one launch, and as far from it as possible
// in the next, so that a missing dependency shows.
//
// A graph is not synchronized: two threads that work on it at once end the process.
//
// As in CUDA, operations that a capture cannot hold are refused, and invalidate it. Memory from the pool is
// refused as well: this graph has no nodes for it.
#pragma once

#include <functional>
#include <memory>

#include <cuda_runtime_api.h>

#include "late_queue.h"

namespace gpu_stand_in {

class Capture;

/// The end of a stream in a capture, as an event remembers it.
struct CapturedPlace;

/// Puts a task on a stream: to run late, or into the graph that captures it.
cudaError_t submit(const std::shared_ptr<LateQueue>& queue, std::function<void()> task);

/// For calls that make the host wait for the stream, or ask how far it is, and others that a graph cannot
/// hold.
cudaError_t require_not_captured(const std::shared_ptr<LateQueue>& queue);
/// The same for all streams of a device.
cudaError_t require_none_captured(int device);
/// For calls that a thread must not make while it, or any other, captures in a mode that forbids them.
cudaError_t require_safe();

/// The place to remember; null when the stream is not captured.
[[nodiscard]] std::shared_ptr<const CapturedPlace> captured_place(const std::shared_ptr<LateQueue>& queue);
/// Makes the stream wait, which takes it into the capture.
cudaError_t wait_for(const std::shared_ptr<LateQueue>& queue, const CapturedPlace& place);
/// For a captured stream that is told to wait for work outside its capture.
cudaError_t refuse_isolation(const std::shared_ptr<LateQueue>& queue);
/// For calls about an event that stands for a place in a capture.
cudaError_t refuse_captured(const CapturedPlace& place);

}  // namespace gpu_stand_in
