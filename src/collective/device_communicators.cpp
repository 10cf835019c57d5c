#include <cohort/collective/device_communicators.h>

#include <utility>

#include "staged_communicator.h"

// As cohort_device_runtime in device_runtime.cpp.
extern "C" __attribute__((weak)) cohort::DeviceCollectives* cohort_device_collectives() noexcept;

namespace cohort {

DeviceCollectives* linked_device_collectives() noexcept {
  return cohort_device_collectives == nullptr ? nullptr : cohort_device_collectives();
}

std::vector<std::unique_ptr<Communicator>> make_staged_communicators(
    std::vector<std::unique_ptr<Communicator>> seats, std::span<const Device> devices) {
  COHORT_CHECK(seats.size() == devices.size());
  std::vector<std::unique_ptr<Communicator>> staged;
  staged.reserve(seats.size());
  for (std::size_t i = 0; i < seats.size(); ++i)
    staged.push_back(std::make_unique<StagedCommunicator>(std::move(seats[i]), devices[i]));
  return staged;
}

}  // namespace cohort
