#include "collective/device_communicators.h"

#include <utility>

#include "staged_communicator.h"

// As cohort_device_runtime in device_runtime.cpp.
extern "C" __attribute__((weak)) cohort::DeviceCollectives* cohort_device_collectives() noexcept;

namespace cohort {

DeviceCollectives* linked_device_collectives() noexcept {
  return cohort_device_collectives == nullptr ? nullptr : cohort_device_collectives();
}

std::vector<std::unique_ptr<Communicator>> make_staged_communicators(
    std::vector<std::unique_ptr<Communicator>> hosts, std::span<const Device> devices) {
  COHORT_CHECK(hosts.size() == devices.size());
  std::vector<std::unique_ptr<Communicator>> staged;
  staged.reserve(hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i)
    staged.push_back(std::make_unique<StagedCommunicator>(std::move(hosts[i]), devices[i]));
  return staged;
}

}  // namespace cohort
