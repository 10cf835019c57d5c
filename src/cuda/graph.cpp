#include <cohort/cuda/graph.h>

#include <exception>
#include <utility>
#include <vector>

#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>

#include "calls.h"
#include "capture.h"
#include "graph_part.h"

namespace cohort::cuda {

class Graph::State {
 public:
  State(Capture& capture, cudaGraphExec_t executable)
      : device_(capture.device()),
        executable_(executable),
        memory_(capture.take_memory()),
        parts_(capture.parts()) {}

  ~State() {
    release_on(device_, [this] {
      compute_stream(device_).drain();
      calls::destroy_graph(executable_);
    });
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] Device device() const noexcept { return device_; }

  void launch() {
    require_not_captured(device_, "the launch of a graph");
    for (const auto& part : parts_) part->prepare_launch();
    {
      const CurrentDevice current(device_);
      calls::launch_graph(executable_, compute_stream(device_).handle());
    }
    for (const auto& part : parts_) part->launched();
  }

 private:
  Device device_;
  cudaGraphExec_t executable_;
  std::vector<std::shared_ptr<const void>> memory_;
  std::vector<std::shared_ptr<GraphPart>> parts_;
};

Graph::Graph(std::unique_ptr<State> state) : state_(std::move(state)) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Device Graph::device() const noexcept { return state_->device(); }

void Graph::launch() { state_->launch(); }

namespace {

/// Calls `part`, and remembers the first error of several such calls.
template <class Part>
void attempt(std::exception_ptr& first_error, const Part& part) {
  try {
    part();
  } catch (...) {
    if (first_error == nullptr) first_error = std::current_exception();
  }
}

/// The capture is ended even if the step fails; otherwise the GPU could not be used any more.
cudaGraph_t record(Capture& capture, const std::function<void()>& step) {
  std::exception_ptr error;
  cudaGraph_t graph = nullptr;
  attempt(error, step);
  for (const auto& part : capture.parts()) attempt(error, [&] { part->conclude(); });
  attempt(error, [&] { graph = capture.end(); });
  if (error == nullptr) return graph;
  if (graph != nullptr) calls::destroy_graph(graph);
  std::rethrow_exception(error);
}

}  // namespace

Graph capture(Device device, const std::function<void()>& step) {
  const CurrentDevice current(device);
  const std::shared_ptr<Capture> capture = Capture::begin(device);
  cudaGraph_t graph = record(*capture, step);
  cudaGraphExec_t executable = nullptr;
  std::exception_ptr error;
  attempt(error, [&] { executable = calls::instantiate(graph); });
  calls::destroy_graph(graph);
  if (error != nullptr) std::rethrow_exception(error);
  return Graph(std::make_unique<Graph::State>(*capture, executable));
}

}  // namespace cohort::cuda
