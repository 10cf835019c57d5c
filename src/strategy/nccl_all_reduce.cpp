#include <cohort/strategy/nccl_all_reduce.h>

#include <algorithm>

namespace cohort {

bool NcclAllReduce::fits(std::span<const Device> devices) const {
  return std::ranges::all_of(devices, [](Device device) { return device.kind() == DeviceKind::kCuda; });
}

void NcclAllReduce::all_reduce(std::span<const Tensor> parts, int /*pack*/) const {
  throw Unavailable("NcclAllReduce of {}: this build of Cohort has no GPU support", describe(parts.front()));
}

}  // namespace cohort
