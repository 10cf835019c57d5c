#include "remote/shared_endpoint.h"

#include <unistd.h>

#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/config.h>

#include "supervised_task.h"

namespace cohort::remote {
namespace {

EndpointOptions with_configured_signs(EndpointOptions options) {
  using std::chrono::milliseconds;
  options.heartbeat = std::chrono::duration_cast<milliseconds>(config().heartbeat());
  options.silence = std::chrono::duration_cast<milliseconds>(config().silence());
  return options;
}

/// The addresses at which this process listens. A child that was forked has none of them.
class AddressesInUse {
 public:
  [[nodiscard]] bool add(const Address& address) {
    const std::lock_guard lock(mutex_);
    return names_.insert(name_of_place(address)).second;
  }
  void remove(const Address& address) {
    const std::lock_guard lock(mutex_);
    names_.erase(name_of_place(address));
  }

 private:
  static std::string name_of_place(const Address& address) {
    return fmt::format("{} {} {}", ::getpid(), address.local, fmt::join(address.network, " "));
  }

  std::mutex mutex_;
  std::set<std::string> names_;
};

AddressesInUse& addresses_in_use() {
  static AddressesInUse all;
  return all;
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

SharedEndpoint::Place::~Place() {
  if (address_) addresses_in_use().remove(*address_);
}

void SharedEndpoint::Place::take(const Address& address) {
  if (!addresses_in_use().add(address)) {
    throw WrongContext(
        "{} listens at its address already, for an rpc::Server or a ParameterServerStrategy of this process, "
        "and a task has one of them at a time: end that one first, or have another task offer the methods",
        name_of(address.task));
  }
  address_ = address;
}

SharedEndpoint::SharedEndpoint(EndpointOptions options, Handler& handler, Upkeep* upkeep)
    : upkeep_(upkeep), endpoint_(with_configured_signs(std::move(options)), handler) {
  place_.take(endpoint_.address());
}

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
