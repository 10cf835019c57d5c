#include <cohort/cuda/event.h>

#include <cohort/base/error.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>

#include "calls.h"
#include "host_wait.h"

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

}  // namespace cohort::cuda
