#include "remote/shared_endpoint.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <cohort/base/config.h>

namespace cohort::remote {
namespace {

EndpointOptions with_configured_signs(EndpointOptions options) {
  using std::chrono::milliseconds;
  options.heartbeat = std::chrono::duration_cast<milliseconds>(config().heartbeat());
  options.silence = std::chrono::duration_cast<milliseconds>(config().silence());
  return options;
}

}  // namespace

SharedEndpoint::Turn::Turn(SharedEndpoint& shared) : shared_(shared) {
  if (shared_.mutex_.try_lock()) return;
  shared_.at_the_door_.fetch_add(1);
  shared_.endpoint_.wake();
  shared_.mutex_.lock();
  shared_.at_the_door_.fetch_sub(1);
}

SharedEndpoint::Turn::~Turn() { shared_.mutex_.unlock(); }

SharedEndpoint::Waiting::Waiting(SharedEndpoint& shared) noexcept : shared_(shared) {
  shared_.waiting_.fetch_add(1);
}

SharedEndpoint::Waiting::~Waiting() {
  shared_.waiting_.fetch_sub(1);
  shared_.progress_.notify();
}

SharedEndpoint::Polling::Polling(SharedEndpoint& shared) noexcept : shared_(shared) {
  shared_.polled_.store(true);
}

SharedEndpoint::Polling::~Polling() {
  shared_.polled_.store(false);
  shared_.mutex_.unlock();
  shared_.progress_.notify();
}

SharedEndpoint::Limit::Limit(SharedEndpoint& shared, Deadline deadline) : shared_(shared) {
  if (deadline.is_never()) return;
  {
    const std::lock_guard lock(shared_.limits_mutex_);
    place_ = shared_.limits_.emplace(deadline.at(), deadline);
    find_earliest();
  }
  // Whoever polls may sleep for longer.
  if (shared_.polled_.load()) shared_.endpoint_.wake();
}

SharedEndpoint::Limit::~Limit() {
  if (!place_) return;
  const std::lock_guard lock(shared_.limits_mutex_);
  shared_.limits_.erase(*place_);
  find_earliest();
}

void SharedEndpoint::Limit::find_earliest() {
  shared_.earliest_limit_.store(shared_.limits_.empty() ? Clock::time_point::max()
                                                        : shared_.limits_.begin()->first);
}

SharedEndpoint::SharedEndpoint(EndpointOptions options, Handler& handler, Upkeep* upkeep)
    : upkeep_(upkeep), endpoint_(with_configured_signs(std::move(options)), handler) {}

SharedEndpoint::~SharedEndpoint() = default;

Deadline SharedEndpoint::earliest(Deadline deadline) {
  if (earliest_limit_.load() >= deadline.at()) return deadline;
  const std::lock_guard lock(limits_mutex_);
  return limits_.empty() ? deadline : limits_.begin()->second;
}

void SharedEndpoint::poll() {
  if (!mutex_.try_lock()) return;
  const Polling polling(*this);
  endpoint_.poll();
}

void SharedEndpoint::notify() noexcept {
  progress_.notify();
  endpoint_.wake();
}

}  // namespace cohort::remote
