// Streams and events, and copies on a stream.
#include <cohort/cuda/stream.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/cuda/copy.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>
#include <cohort/cuda/event.h>
#include <cohort/device/tensor.h>

#include "calls.h"
#include "capture.h"
#include "guard.h"

namespace cohort::cuda {

Event::Event(Device device, Purpose purpose) : device_(device) {
  const CurrentDevice current(device);
  handle_ = calls::create_event(purpose == Purpose::kTiming);
}

Event::~Event() {
  if (handle_ != nullptr) release_on(device_, [this] { calls::destroy_event(handle_); });
}

void Event::record(const Stream& stream) const {
  COHORT_CHECK(stream.device() == device_);
  const CurrentDevice current(device_);
  calls::record(handle_, stream.handle());
}

bool Event::done() const {
  const CurrentDevice current(device_);
  return calls::is_done(handle_);
}

void Event::synchronize() const {
  wait_on_host(device_, [this] { return done(); });
}

double Event::microseconds_since(const Event& start) const {
  constexpr double kMicrosecondsPerMillisecond = 1000;
  const CurrentDevice current(device_);
  return kMicrosecondsPerMillisecond * calls::elapsed_milliseconds(start.handle_, handle_);
}

namespace {

/// Made on first use, and with it what else a GPU needs. Never destroyed: tensors may be static, and release
/// their memory on a stream.
struct StreamSlot {
  std::once_flag once;
  std::unique_ptr<Stream> stream;
};

/// Whether the thread has destroyed its marks: static tensors are released after that.
thread_local bool marks_are_gone = false;

struct Marks {
  Marks() : events(devices().size()) {}
  ~Marks() { marks_are_gone = true; }
  std::vector<std::unique_ptr<Event>> events;
};

/// Calls `use(event)` with an event of the calling thread's, for immediate use: a wait for it is for its
/// latest record.
template <class Use>
void with_mark(Device device, const Use& use) {
  if (marks_are_gone) return use(Event(device));
  thread_local Marks marks;
  std::unique_ptr<Event>& event = marks.events[static_cast<std::size_t>(device.index())];
  if (event == nullptr) event = std::make_unique<Event>(device);
  use(*event);
}

}  // namespace

Stream::Stream(Device device, Priority priority) : device_(device) {
  const CurrentDevice current(device);
  handle_ = calls::create_stream(priority == Priority::kHigh);
}

Stream::~Stream() {
  if (handle_ != nullptr) release_on(device_, [this] { calls::destroy_stream(handle_); });
}

void Stream::wait(const Event& event) const {
  const CurrentDevice current(device_);
  calls::wait_event(handle_, event.handle());
}

bool Stream::idle() const {
  const CurrentDevice current(device_);
  return calls::is_idle(handle_);
}

void Stream::synchronize() const {
  with_mark(device_, [this](const Event& now) {
    now.record(*this);
    now.synchronize();
  });
}

void Stream::drain() const noexcept {
  try {
    const auto wait = [](const Event& event) {
      while (!event.done()) std::this_thread::yield();
    };
    with_mark(device_, [&](const Event& now) {
      if (this != &compute_stream(device_)) {
        now.record(*this);
      } else if (const auto capture = Capture::record_outside(now, *this)) {
        return wait(capture->earlier());  // what is captured does not run
      }
      wait(now);
    });
  } catch (const std::exception& error) {
    logging::debug("{}: memory is released after an error: {}", to_string(device_), error.what());
  }
}

const Stream& compute_stream(Device device) {
  static auto& slots = *new std::vector<StreamSlot>(devices().size());
  require_device(device);
  StreamSlot& slot = slots[static_cast<std::size_t>(device.index())];
  std::call_once(slot.once, [&] {
    slot.stream = std::make_unique<Stream>(device);
    // Otherwise each wait for the GPU, by whatever library, empties the pool, and each step fills it again.
    const CurrentDevice current(device);
    calls::keep_released_memory(device.index());
  });
  return *slot.stream;
}

void order(const Stream& earlier, const Stream& later) {
  order(earlier.device(), earlier.handle(), later.handle());
}

void order(Device device, StreamHandle earlier, StreamHandle later) {
  with_mark(device, [&](const Event& now) {
    const CurrentDevice current(device);
    calls::record(now.handle(), earlier);
    calls::wait_event(later, now.handle());
  });
}

Tensor pinned(Shape shape, DType dtype) {
  const std::size_t bytes = shape.elements() * size_of(dtype);
  std::shared_ptr<void> memory(calls::host_alloc(std::max<std::size_t>(bytes, 1)), calls::free_host);
  auto* const data = static_cast<std::byte*>(memory.get());
  return Tensor::wrap(std::make_shared<const Buffer>(data, bytes, Device(), std::move(memory)), 0, shape,
                      dtype);
}

void copy_async(const Tensor& from, const Tensor& to, const Stream& stream) {
  if (from.dtype() != to.dtype() || from.shape() != to.shape()) {
    throw InvalidArgument("cannot copy {} into {}: dtype and shape must agree", describe(from), describe(to));
  }
  if (is_cpu(from) && is_cpu(to))
    throw InvalidArgument("copy_async of {}: neither side is on a GPU", describe(from));
  if (from.bytes() == 0) return;
  const CurrentDevice current(stream.device());
  calls::memcpy_async(to.data(), from.data(), from.bytes(), stream.handle());
}

}  // namespace cohort::cuda
