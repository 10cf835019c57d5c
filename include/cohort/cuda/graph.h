// A Graph is a step of one GPU, recorded once and launched as often as wanted: the GPU gets its kernels,
// copies and collectives in one call of the host. `capture` calls a function and records, instead of
// running it, what is queued on the GPU's compute stream and on streams that are ordered with it.
//
//   step();                                          // once: makes what is kept from step to step
//   cuda::Graph graph = cuda::capture(gpu, step);
//   for (...) { inputs.copy_from(next); graph.launch(); }
//
// A launch does the same work on the same memory; what the host did in the function is not done again,
// such as counting steps. Tensors that the function used must live as long as the graph; those that it
// made, or released, are kept by it.
//
// A graph with collectives is captured by all their members, and launched by all in the same order with
// their other calls. See "CUDA graphs" in docs/gpu.md.
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

  /// Queues the step on the compute stream, after what its collectives' communicators were asked for before.
  /// As with any other call, an error of the GPU's comes when its result is read, or later. One thread at
  /// a time.
  /// @throws what has ended a communicator of the step; WrongContext while the GPU is captured.
  void launch();

 private:
  friend Graph capture(Device device, const std::function<void()>& step);
  class State;
  explicit Graph(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Calls `step`, whose calls are for `device`, and no other thread's meanwhile. Nothing of it has run when
/// this returns.
/// @throws what `step` throws: WrongContext for what a graph cannot hold, such as waiting for the GPU,
/// copies from and to the host, and collectives that go by the host; WrongContext when the GPU is being
/// captured already; Internal with CUDA's text.
[[nodiscard]] Graph capture(Device device, const std::function<void()>& step);

}  // namespace cohort::cuda
