#include "capture.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <shared_mutex>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>

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

}  // namespace cohort::cuda
