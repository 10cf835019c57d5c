#include "launch_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>

#include "base/quiet_thread.h"

namespace cohort::nccl {

std::shared_ptr<LaunchQueue> LaunchQueue::of(Device device) {
  struct Queues {
    std::mutex mutex;
    std::vector<std::weak_ptr<LaunchQueue>> of_devices =
        std::vector<std::weak_ptr<LaunchQueue>>(cuda::devices().size());
  };
  // Never destroyed: communicators may be static.
  static Queues& queues = *new Queues;
  cuda::require_device(device);
  const std::lock_guard lock(queues.mutex);
  std::weak_ptr<LaunchQueue>& known = queues.of_devices[static_cast<std::size_t>(device.index())];
  std::shared_ptr<LaunchQueue> queue = known.lock();
  if (queue == nullptr) {
    queue = std::make_shared<LaunchQueue>(device);
    known = queue;
    cuda::wait_before_captures(device, queue);
  }
  return queue;
}

LaunchQueue::~LaunchQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

void LaunchQueue::add(const void* owner, std::function<void()> launch) {
  auto entry = std::make_shared<Entry>(Entry{owner, std::move(launch)});
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = start_quiet_thread([this] { serve(); });
  entries_.push_back(std::move(entry));
  changed_.notify_all();
}

void LaunchQueue::serve() {
  const cuda::CurrentDevice current(device_);
  std::unique_lock lock(mutex_);
  while (true) {
    const auto is_next = [this] { return !entries_.empty() && entries_.front()->launch != nullptr; };
    changed_.wait(lock, [&] { return ending_ || is_next(); });
    if (!is_next()) return;
    const std::shared_ptr<Entry> next = entries_.front();
    lock.unlock();
    next->launch();
    next->launch = nullptr;  // with all that it owns, before its owner may go
    lock.lock();
    pop();
  }
}

/// The lock is held.
void LaunchQueue::pop() {
  entries_.pop_front();
  changed_.notify_all();
}

void LaunchQueue::remove(const void* owner) {
  std::deque<std::shared_ptr<Entry>> removed;  // gone after the lock
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return;
  const auto is_kept = [&](const auto& entry) { return entry->owner != owner; };
  const auto rest = std::stable_partition(entries_.begin() + 1, entries_.end(), is_kept);
  std::move(rest, entries_.end(), std::back_inserter(removed));
  entries_.erase(rest, entries_.end());
}

bool LaunchQueue::has(const void* owner) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(entries_, [&](const auto& entry) { return entry->owner == owner; });
}

void LaunchQueue::wait_for(const void* owner) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return std::ranges::none_of(entries_, [&](const auto& entry) { return entry->owner == owner; });
  });
}

void LaunchQueue::wait_until_empty() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return entries_.empty(); });
}

LaunchQueue::Turn::Turn(LaunchQueue& queue) : queue_(queue) {
  const auto own = std::make_shared<Entry>();
  std::unique_lock lock(queue_.mutex_);
  queue_.entries_.push_back(own);
  queue_.changed_.wait(lock, [&] { return queue_.entries_.front() == own; });
}

LaunchQueue::Turn::Turn(LaunchQueue& queue, std::try_to_lock_t /*tag*/) : queue_(queue) {
  const std::lock_guard lock(queue_.mutex_);
  has_it_ = queue_.entries_.empty();
  if (has_it_) queue_.entries_.push_back(std::make_shared<Entry>());
}

LaunchQueue::Turn::~Turn() {
  if (!has_it_) return;
  const std::lock_guard lock(queue_.mutex_);
  queue_.pop();
}

}  // namespace cohort::nccl
