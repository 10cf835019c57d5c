// Events that ended calls no longer need, for later calls: making one in the driver is slow.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include <cohort/cuda/event.h>

namespace cohort::nccl {

class EventPool {
 public:
  explicit EventPool(Device device) : device_(device) {}

  [[nodiscard]] cuda::Event take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        cuda::Event event = std::move(free_.back());
        free_.pop_back();
        return event;
      }
    }
    return cuda::Event(device_);
  }

  void give_back(cuda::Event event) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(event));
  }

 private:
  Device device_;
  std::mutex mutex_;
  std::vector<cuda::Event> free_;
};

}  // namespace cohort::nccl
