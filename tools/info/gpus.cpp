#include <fmt/format.h>

#include <cohort/cuda/devices.h>

#include "facts.h"

namespace cohort::info {
namespace {

std::vector<std::string> peers_of(Device device, const std::vector<Device>& all) {
  std::vector<std::string> peers;
  for (const Device peer : all) {
    if (cuda::can_access_peer(device, peer)) peers.push_back(to_string(peer));
  }
  return peers;
}

}  // namespace

AllGpus gather_gpus() {
  AllGpus gpus{.list = {}, .why_none = cuda::why_no_devices()};
  const std::vector<Device> all = cuda::devices();
  for (const Device device : all) {
    // Free memory is not asked for: that would take some of it, and fails on a GPU that another process uses
    // exclusively.
    const cuda::DeviceProperties properties = cuda::properties(device);
    gpus.list.push_back({.name = to_string(device),
                         .model = properties.name,
                         .bus_id = properties.bus_id,
                         .compute_capability = fmt::format("{}.{}", properties.major, properties.minor),
                         .memory_bytes = properties.memory_bytes,
                         .peers = peers_of(device, all),
                         .has_memory_pools = properties.has_memory_pools});
  }
  return gpus;
}

}  // namespace cohort::info
