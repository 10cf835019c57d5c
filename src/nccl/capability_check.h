// Whether NCCL can serve a group of members: what each contributes to the check, and the conclusion, which is
// the same on all of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <nccl.h>

#include <cohort/collective/collective_call.h>
#include <cohort/device/device.h>

namespace cohort::nccl {

/// Travels as bytes.
struct Capability {
  int version = 0;                         ///< of NCCL, as NCCL_VERSION_CODE; 0: there is none
  std::array<unsigned char, 16> gpu = {};  ///< its UUID
  std::array<char, 32> bus = {};           ///< the place of its card, by which NCCL tells GPUs apart
  std::uint64_t host = 0;                  ///< fingerprint of what NCCL takes for the host's identity
  std::uint64_t process = 0;               ///< another one in each process
  int device = 0;                          ///< the GPU's number in that process
  std::array<char, 512> why_none = {};     ///< text, where there is no NCCL
  ncclUniqueId group = {};  ///< member 0's id for the group, by which NCCL's communicators meet
};
static_assert(std::is_trivially_copyable_v<Capability>);

/// The contribution of member `rank`, with `device` as its GPU.
[[nodiscard]] Capability capability_of(int rank, Device device);

/// The GPUs of the other members of this process.
[[nodiscard]] std::vector<Device> peers_in_process(std::span<const Capability> capabilities, int rank);

/// Why NCCL cannot serve these members, given by rank; nothing when it can.
[[nodiscard]] std::optional<std::string> why_unsupported(std::span<const Capability> capabilities,
                                                         std::span<const MemberInfo> members);

}  // namespace cohort::nccl
