#include "guard.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <cohort/cuda/devices.h>

#include "capture.h"

namespace cohort::cuda {
namespace {

/// How often to look before the first sleep: some microseconds, which are enough in most steps.
constexpr int kSpins = 200;
constexpr std::chrono::microseconds kNap{20};

struct Guards {
  std::mutex mutex;
  std::vector<Guard*> all;
};

/// Never destroyed: static tensors are copied late.
Guards& guards_of(Device device) {
  static auto& of_devices = *new std::vector<Guards>(devices().size());
  return of_devices[static_cast<std::size_t>(device.index())];
}

void require_sound(Guards& guards) {
  const std::lock_guard lock(guards.mutex);
  for (Guard* const guard : guards.all) guard->require_sound();
}

}  // namespace

GuardScope::GuardScope(Device device, Guard& guard) : device_(device), guard_(guard) {
  require_device(device);
  Guards& guards = guards_of(device_);
  const std::lock_guard lock(guards.mutex);
  guards.all.push_back(&guard_);
}

GuardScope::~GuardScope() {
  Guards& guards = guards_of(device_);
  const std::lock_guard lock(guards.mutex);
  std::erase(guards.all, &guard_);
}

void wait_on_host(Device device, const std::function<bool()>& done) {
  require_not_captured(device, "a wait of the host for the GPU");
  Guards& guards = guards_of(device);
  for (int looks = 0; !done(); ++looks) {
    require_sound(guards);
    if (looks < kSpins)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kNap);
  }
  require_sound(guards);
}

}  // namespace cohort::cuda
