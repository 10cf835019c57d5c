#include <cohort/strategy/nccl_all_reduce.h>

#include <algorithm>

#include <cohort/collective/thread_communicator.h>

#include "collective/device_communicators.h"

namespace cohort {

NcclAllReduce::NcclAllReduce(const AllReduceOptions& options) : AllReduceCrossDeviceOps(options) {}

NcclAllReduce::~NcclAllReduce() = default;

bool NcclAllReduce::fits(std::span<const Device> devices) const {
  const auto is_gpu = [](Device device) { return device.kind() == DeviceKind::kCuda; };
  const DeviceCollectives* const module = linked_device_collectives();
  return std::ranges::all_of(devices, is_gpu) && module != nullptr && module->why_not(devices).empty();
}

void NcclAllReduce::connect(std::span<const Tensor> parts) {
  std::vector<Device> devices;
  devices.reserve(parts.size());
  for (const Tensor& part : parts) devices.push_back(part.device());
  if (devices == devices_) return;
  auto communicators = make_thread_communicators(static_cast<int>(devices.size()));
  communicators_ = linked_device_collectives()->connect(communicators, devices);
  devices_ = std::move(devices);
}

void NcclAllReduce::all_reduce(std::span<const Tensor> parts, int /*pack*/) {
  connect(parts);
  // This thread makes the calls of all members, so no call may wait for the others.
  std::vector<Work> works;
  works.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    works.push_back(communicators_[i]->all_reduce_async(parts[i], ReduceOp::kSum));
  for (Work& work : works) work.wait();
}

}  // namespace cohort
