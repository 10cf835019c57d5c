#include <cohort/cuda/stream.h>

#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>

#include "calls.h"
#include "capture.h"

namespace cohort::cuda {
namespace {

/// The streams of one GPU, made on first use.
struct OwnStreams {
  explicit OwnStreams(Device device) : compute(device), communication(device, Stream::Priority::kHigh) {}
  Stream compute;
  Stream communication;
};

/// Never destroyed: tensors may be static, and release their memory on a stream.
OwnStreams& own_streams(Device device) {
  struct Slot {
    std::once_flag once;
    std::unique_ptr<OwnStreams> streams;
  };
  static auto& slots = *new std::vector<Slot>(devices().size());
  require_device(device);
  Slot& slot = slots[static_cast<std::size_t>(device.index())];
  std::call_once(slot.once, [&] { slot.streams = std::make_unique<OwnStreams>(device); });
  return *slot.streams;
}

/// An event of the calling thread's, for immediate use: a wait for it is for its latest record.
const Event& mark(Device device) {
  thread_local std::vector<std::unique_ptr<Event>> events(devices().size());
  std::unique_ptr<Event>& event = events[static_cast<std::size_t>(device.index())];
  if (event == nullptr) event = std::make_unique<Event>(device);
  return *event;
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
  const Event& now = mark(device_);
  now.record(*this);
  now.synchronize();
}

void Stream::drain() const noexcept {
  try {
    const std::shared_ptr<Capture> capture = Capture::of(device_);
    const bool is_captured = capture != nullptr && this == &compute_stream(device_);
    // Captured work does not run; work queued before it does.
    const Event& now = is_captured ? capture->earlier() : mark(device_);
    if (!is_captured) now.record(*this);
    while (!now.done()) std::this_thread::yield();
  } catch (const std::exception& error) {
    logging::debug("{}: memory is released after an error: {}", to_string(device_), error.what());
  }
}

const Stream& compute_stream(Device device) { return own_streams(device).compute; }

const Stream& communication_stream(Device device) { return own_streams(device).communication; }

void order(const Stream& earlier, const Stream& later) {
  order(earlier.device(), earlier.handle(), later.handle());
}

void order(Device device, StreamHandle earlier, StreamHandle later) {
  const Event& now = mark(device);
  const CurrentDevice current(device);
  calls::record(now.handle(), earlier);
  calls::wait_event(later, now.handle());
}

}  // namespace cohort::cuda
