// A capture, and the graph that it makes.
#include "capture.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>
#include <cohort/cuda/graph.h>
#include <cohort/cuda/stream.h>

#include "calls.h"

namespace cohort::cuda {
namespace {

/// The lock keeps a capture from beginning or ending between a look at it and the release of memory that
/// depends on it. Other calls need no lock: while a GPU is captured, no other thread uses it.
struct CaptureSlot {
  std::shared_mutex mutex;
  std::shared_ptr<Capture> current;
  std::optional<Stream> memory_stream;  ///< of one capture after the other
  std::vector<std::weak_ptr<QueuesWork>> waits_for;
};

/// Never destroyed: static tensors release their memory late.
CaptureSlot& slot_of(Device device) {
  static auto& slots = *new std::vector<CaptureSlot>(devices().size());
  require_device(device);
  return slots[static_cast<std::size_t>(device.index())];
}

/// Without the lock, which what is queued may need.
void wait_until_empty(CaptureSlot& slot) {
  std::vector<std::weak_ptr<QueuesWork>> objects;
  {
    const std::shared_lock lock(slot.mutex);
    objects = slot.waits_for;
  }
  for (const auto& known : objects) {
    if (const std::shared_ptr<QueuesWork> object = known.lock()) object->wait_until_empty();
  }
}

void release(std::byte* memory, Device device) {
  CaptureSlot& slot = slot_of(device);
  const std::shared_lock lock(slot.mutex);
  if (slot.current == nullptr) {
    return release_on(device, [&] { calls::free_async(memory, compute_stream(device).handle()); });
  }
  slot.current->keep(std::shared_ptr<const std::byte>(
      memory, [memory, device](const std::byte* /*memory*/) { release(memory, device); }));
}

}  // namespace

Capture::Capture(Device device, const Stream& memory_stream)
    : device_(device), memory_stream_(memory_stream), earlier_(device) {}

Capture::~Capture() {
  try {
    // From here on the compute stream uses and releases the memory, so it follows the memory stream and
    // everything that was waited for.
    order(memory_stream_, compute_stream(device_));
  } catch (const std::exception&) {
    // A failed device no longer uses the memory.
  }
}

std::shared_ptr<Capture> Capture::begin(Device device) {
  CaptureSlot& slot = slot_of(device);
  wait_until_empty(slot);
  const Stream& stream = compute_stream(device);
  const std::unique_lock lock(slot.mutex);
  if (slot.current != nullptr)
    throw WrongContext("a graph is being captured on {} already", to_string(device));
  if (!slot.memory_stream) slot.memory_stream.emplace(device);
  auto capture = std::make_shared<Capture>(device, *slot.memory_stream);
  capture->earlier_.record(stream);
  calls::begin_capture(stream.handle());
  slot.current = capture;
  return capture;
}

std::shared_ptr<Capture> Capture::of(Device device) {
  CaptureSlot& slot = slot_of(device);
  const std::shared_lock lock(slot.mutex);
  return slot.current;
}

std::shared_ptr<Capture> Capture::record_outside(const Event& event, const Stream& stream) {
  CaptureSlot& slot = slot_of(stream.device());
  const std::shared_lock lock(slot.mutex);
  if (slot.current == nullptr) event.record(stream);
  return slot.current;
}

void Capture::add(std::shared_ptr<GraphPart> part) {
  const std::lock_guard lock(mutex_);
  parts_.push_back(std::move(part));
}

void Capture::keep(std::shared_ptr<const void> memory) {
  const std::lock_guard lock(mutex_);
  memory_.push_back(std::move(memory));
}

cudaGraph_t Capture::end() {
  CaptureSlot& slot = slot_of(device_);
  const std::unique_lock lock(slot.mutex);
  slot.current = nullptr;
  return calls::end_capture(compute_stream(device_).handle());
}

std::shared_ptr<const Buffer> allocate_from_pool(std::size_t bytes, Device device) {
  const std::shared_ptr<Capture> capture = Capture::of(device);
  const Stream& stream = capture == nullptr ? compute_stream(device) : capture->memory_stream();
  const CurrentDevice current(device);
  auto* const memory =
      static_cast<std::byte*>(calls::malloc_async(std::max<std::size_t>(bytes, 1), stream.handle()));
  std::shared_ptr<const Buffer> buffer(new Buffer(memory, bytes, device, nullptr), [](const Buffer* gone) {
    release(gone->data(), gone->device());
    delete gone;
  });
  if (capture != nullptr) capture->keep(buffer);
  return buffer;
}

void empty_pool(Device device) {
  const CurrentDevice current(device);
  compute_stream(device).drain();
  calls::trim_pool(device.index());
}

void open_memory(Device owner, Device peer) {
  static auto& opened = *new std::vector<std::once_flag>(devices().size() * devices().size());
  require_device(owner);
  require_device(peer);
  const std::size_t pair =
      static_cast<std::size_t>(owner.index()) * devices().size() + static_cast<std::size_t>(peer.index());
  std::call_once(opened[pair], [&] {
    if (!can_access_peer(peer, owner)) return;
    const CurrentDevice current(owner);
    calls::open_memory_to(owner.index(), peer.index());
  });
}

void wait_before_captures(Device device, std::weak_ptr<QueuesWork> object) {
  CaptureSlot& slot = slot_of(device);
  const std::unique_lock lock(slot.mutex);
  std::erase_if(slot.waits_for, [](const auto& known) { return known.expired(); });
  slot.waits_for.push_back(std::move(object));
}

bool is_captured(Device device) { return Capture::of(device) != nullptr; }

void take_part(Device device, std::shared_ptr<GraphPart> part) {
  const std::shared_ptr<Capture> capture = Capture::of(device);
  COHORT_CHECK(capture != nullptr);
  capture->add(std::move(part));
}

void wait_after_capture(const Event& event) {
  const std::shared_ptr<Capture> capture = Capture::of(event.device());
  COHORT_CHECK(capture != nullptr);
  capture->memory_stream().wait(event);
}

void require_not_captured(Device device, std::string_view what) {
  if (!is_captured(device)) return;
  throw WrongContext(
      "{} is not possible while a graph is captured on {}: a graph records only what the GPU does by itself, "
      "and none of it has run yet; do it before the capture, or after a launch",
      what, to_string(device));
}

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
