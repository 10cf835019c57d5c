#include "gpu/gpu_members.h"

#include <cohort/device/device.h>

#include "errors.h"
#include "strategy/device_route.h"
#include "strategy/worker_gpus.h"

namespace cohort::bench {

std::vector<Device> gpus_of_threads(int members) {
  std::vector<Device> devices;
  try {
    for (int member = 0; member < members; ++member) {
      devices.emplace_back(DeviceKind::kCuda, member);
      require_exists(devices.back());
    }
  } catch (const Unavailable& error) {
    throw UsageError("--device cuda with {} {}: {}", members, members == 1 ? "member" : "members",
                     error.what());
  }
  return devices;
}

Device gpu_of_rank(Bootstrap& bootstrap) { return gpus_of_this_worker(&bootstrap).front(); }

std::vector<std::unique_ptr<Communicator>> on_gpus(std::vector<std::unique_ptr<Communicator>> communicators,
                                                   const std::vector<Device>& devices, Bootstrap* bootstrap) {
  const DeviceRoute route("cohort-bench", bootstrap, devices, CommunicationImplementation::kAuto);
  return route.connected(std::move(communicators));
}

}  // namespace cohort::bench
