// A Graph is a step of one GPU, recorded once and launched as often as wanted: the GPU gets its kernels,
// copies and collectives in one call of the host. `capture` calls a function and records, instead of
// running it, what is queued on the GPU's compute stream and on streams that are ordered with it.
//
//   step();                                          // once: makes the state that steps share
//   cuda::Graph graph = cuda::capture(gpu, step);
//   for (...) { inputs.copy_from(next); graph.launch(); }
//
// A launch does the same work on the same memory; the host's part of the function, such as counting steps, is
// not repeated. Tensors that the function used must live as long as the graph; those that it made or released
// are kept alive by the graph.
//
// All members capture a graph with collectives, and launch it in the same order relative to their other
// calls. See "CUDA graphs" in docs/gpu.md.
#pragma once

#include <functional>
#include <memory>

#include <cohort/device/device.h>

namespace cohort::cuda {

class Graph {
 public:
  /// Waits for its launches.
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  [[nodiscard]] Device device() const noexcept;

  /// Queues the step on the compute stream, after earlier calls of the communicators in it. As with any other
  /// call, an error on the GPU is thrown when the result is read, or later. One thread at a time.
  /// @throws the error that has ended a communicator of the step; WrongContext while the GPU is captured.
  void launch();

 private:
  friend Graph capture(Device device, const std::function<void()>& step);
  class State;
  explicit Graph(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Calls `step`, which uses `device`; no other thread may use it meanwhile. On return, nothing of the step
/// has run.
/// @throws what `step` throws: WrongContext for what a graph cannot hold, such as waiting for the GPU, copies
/// from and to the host, and collectives that go through the host; WrongContext when the GPU is being
/// captured already; Internal with CUDA's text.
[[nodiscard]] Graph capture(Device device, const std::function<void()>& step);

}  // namespace cohort::cuda
