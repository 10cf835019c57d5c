// The GPUs that this process sees, and the one that a thread has made current.
#include <cohort/cuda/devices.h>

#include <algorithm>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/cuda/current_device.h>

#include "calls.h"

namespace cohort::cuda {
namespace {

/// The list cannot change while the process lives: CUDA reads the environment once.
const calls::DeviceCount& found() {
  static const calls::DeviceCount count = calls::device_count();
  return count;
}

}  // namespace

std::vector<Device> devices() {
  std::vector<Device> list;
  list.reserve(static_cast<std::size_t>(found().count));
  for (int index = 0; index < found().count; ++index) list.emplace_back(DeviceKind::kCuda, index);
  return list;
}

std::string why_no_devices() { return found().why_none; }

void require_device(Device device) {
  COHORT_CHECK(device.kind() == DeviceKind::kCuda);
  const calls::DeviceCount& all = found();
  if (device.index() < all.count) return;
  if (all.count == 0)
    throw Unavailable("device {} does not exist: this process sees no GPU: {}", to_string(device),
                      all.why_none);
  throw Unavailable("device {} does not exist: this process sees {} GPU{}, cuda:0 to cuda:{}",
                    to_string(device), all.count, all.count == 1 ? "" : "s", all.count - 1);
}

DeviceProperties properties(Device device) {
  require_device(device);
  const cudaDeviceProp known = calls::device_properties(device.index());
  DeviceProperties properties{
      .name = known.name,
      .bus_id = calls::bus_id(device.index()),
      .major = known.major,
      .minor = known.minor,
      .multiprocessors = known.multiProcessorCount,
      .memory_bytes = known.totalGlobalMem,
      .has_memory_pools = calls::device_attribute(cudaDevAttrMemoryPoolsSupported, device.index()) != 0};
  std::copy_n(known.uuid.bytes, properties.uuid.size(), properties.uuid.begin());
  return properties;
}

DeviceMemory memory(Device device) {
  const CurrentDevice current(device);
  DeviceMemory memory;
  calls::memory_info(memory.free_bytes, memory.total_bytes);
  return memory;
}

bool can_access_peer(Device device, Device peer) {
  require_device(device);
  require_device(peer);
  return device != peer && calls::can_access_peer(device.index(), peer.index());
}

CurrentDevice::CurrentDevice(Device device) : device_(device), before_(enter(device)) {}

CurrentDevice::~CurrentDevice() {
  if (before_ != device_.index()) leave(before_);
}

int CurrentDevice::enter(Device device) {
  require_device(device);
  const int before = calls::current_device();
  if (before != device.index()) calls::set_device(device.index());
  return before;
}

void CurrentDevice::leave(int before) noexcept {
  // A thread starts with GPU 0, which may be another process's: making it current would create a context
  // there.
  if (calls::has_context(before)) calls::restore_device(before);
}

}  // namespace cohort::cuda
