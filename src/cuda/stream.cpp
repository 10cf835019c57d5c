#include <cohort/cuda/stream.h>

#include <memory>
#include <mutex>
#include <vector>

#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>

#include "calls.h"

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

}  // namespace

Stream::Stream(Device device, Priority priority) : device_(device) {
  const CurrentDevice current(device);
  handle_ = calls::create_stream(priority == Priority::kHigh);
}

Stream::~Stream() {
  if (handle_ != nullptr) calls::destroy_stream(handle_);
}

void Stream::wait(const Event& event) const { calls::wait_event(handle_, event.handle()); }

bool Stream::idle() const { return calls::is_idle(handle_); }

void Stream::synchronize() const { calls::synchronize(handle_); }

const Stream& compute_stream(Device device) { return own_streams(device).compute; }

const Stream& communication_stream(Device device) { return own_streams(device).communication; }

void order(const Stream& earlier, const Stream& later) {
  order(earlier.device(), earlier.handle(), later.handle());
}

void order(Device device, StreamHandle earlier, StreamHandle later) {
  // A wait is for the record before it, whatever becomes of the event afterwards, so one does for all.
  thread_local std::vector<std::unique_ptr<Event>> events(devices().size());
  std::unique_ptr<Event>& reached = events[static_cast<std::size_t>(device.index())];
  if (reached == nullptr) reached = std::make_unique<Event>(device);
  const CurrentDevice current(device);
  calls::record(reached->handle(), earlier);
  calls::wait_event(later, reached->handle());
}

}  // namespace cohort::cuda
