// What there is of GPUs and of NCCL, as far as this build has been made with CUDA and with NCCL.
#include <fmt/format.h>

#include <cohort/base/error.h>

#ifdef COHORT_INFO_HAS_CUDA
#include <cohort/cuda/devices.h>
#endif
#ifdef COHORT_INFO_HAS_NCCL
#include <cohort/nccl/library.h>
#endif

#include "facts.h"

namespace cohort::info {
namespace {

/// `version` is empty in a build without it.
Component component(const char* name, const std::string& version) {
  return {.name = name, .enabled = !version.empty(), .version = version};
}

}  // namespace

std::vector<Component> gather_components() {
  return {component("cuda", COHORT_INFO_CUDA), component("nccl", COHORT_INFO_NCCL)};
}

#ifdef COHORT_INFO_HAS_CUDA

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

#else

AllGpus gather_gpus() { return {.list = {}, .why_none = "built without CUDA"}; }

#endif

#ifdef COHORT_INFO_HAS_NCCL

NcclFacts gather_nccl() {
  try {
    const nccl::LibraryInfo library = nccl::library();
    return {.path = library.path, .version = library.version, .why_none = {}};
  } catch (const Unavailable& error) {
    return {.path = {}, .version = {}, .why_none = error.what()};
  }
}

#else

NcclFacts gather_nccl() { return {.path = {}, .version = {}, .why_none = "built without NCCL"}; }

#endif

}  // namespace cohort::info
