#include "capability_check.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string_view>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/cuda/devices.h>

#include "base/system_calls.h"

#include "calls.h"
#include "open_library.h"

namespace cohort::nccl {
namespace {

std::uint64_t fingerprint_of(std::string_view text) {
  Fingerprint fingerprint;
  for (const char c : text) fingerprint.add(static_cast<unsigned char>(c));
  return fingerprint.value();
}

/// As NCCL has it: NCCL_HOSTID, or what is the machine's own.
std::uint64_t host_identity() {
  if (const char* const chosen = std::getenv("NCCL_HOSTID")) return fingerprint_of(chosen);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return fingerprint_of(fmt::format("{}{}", host_name(), boot));
}

/// Drawn, since processes in containers may have the same number.
std::uint64_t own_process() {
  static const std::uint64_t drawn = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return drawn;
}

std::string describe_member(std::size_t rank, std::span<const MemberInfo> members) {
  return describe(static_cast<int>(rank), members[rank]);
}

template <std::size_t kRoom>
void copy_text(std::string_view text, std::array<char, kRoom>& room) {
  std::copy_n(text.begin(), std::min(text.size(), kRoom - 1), room.begin());
}

}  // namespace

Capability capability_of(int rank, Device device) {
  const cuda::DeviceProperties gpu = cuda::properties(device);
  Capability capability{
      .gpu = gpu.uuid, .host = host_identity(), .process = own_process(), .device = device.index()};
  copy_text(gpu.bus_id, capability.bus);
  try {
    if (rank == 0) capability.group = calls::unique_id();
    capability.version = open_library().version;
  } catch (const Error& error) {
    copy_text(error.what(), capability.why_none);
  }
  return capability;
}

std::vector<Device> peers_in_process(std::span<const Capability> capabilities, int rank) {
  const Capability& own = capabilities[static_cast<std::size_t>(rank)];
  std::vector<Device> peers;
  for (const Capability& other : capabilities) {
    if (other.process == own.process && other.device != own.device)
      peers.emplace_back(DeviceKind::kCuda, other.device);
  }
  return peers;
}

std::optional<std::string> why_unsupported(std::span<const Capability> capabilities,
                                           std::span<const MemberInfo> members) {
  for (std::size_t rank = 0; rank < capabilities.size(); ++rank) {
    const Capability& own = capabilities[rank];
    if (own.version == 0) return fmt::format("{}: {}", describe_member(rank, members), own.why_none.data());
    if (own.version != capabilities.front().version) {
      return fmt::format("{} has NCCL {}, but {} has {}; all need the same", describe_member(rank, members),
                         version_text(own.version), describe_member(0, members),
                         version_text(capabilities.front().version));
    }
    for (std::size_t other = 0; other < rank; ++other) {
      if (capabilities[other].bus != own.bus || capabilities[other].host != own.host) continue;
      if (capabilities[other].gpu != own.gpu) {
        return fmt::format(
            "{} and {} have instances (MIG) of one GPU, at {}, between which NCCL cannot connect; give each "
            "member a GPU of its own",
            describe_member(other, members), describe_member(rank, members), own.bus.data());
      }
      return fmt::format(
          "{} and {} share a GPU, which NCCL takes for two only where NCCL_HOSTID differs between their "
          "processes; give each member a GPU of its own",
          describe_member(other, members), describe_member(rank, members));
    }
  }
  return std::nullopt;
}

}  // namespace cohort::nccl
