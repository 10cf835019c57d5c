// The algorithms that COHORT_ALGORITHM can name without anybody's registering them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <cohort/collective/collective_call.h>

namespace cohort {

enum class BuiltInAlgorithm : std::uint8_t {
  // on a node
  kPieces,
  kDirect,
  kSingleCopy,
  // between nodes
  kRecursiveDoubling,
  kHalvingDoubling,
  kRing,
  kBinomial,
  kScatterAllGather,
  kMpi,  ///< MPI's own collectives
};

inline constexpr std::array<std::string_view, 9> kBuiltInNames{"pieces",
                                                               "direct",
                                                               "single_copy",
                                                               "recursive_doubling",
                                                               "halving_doubling",
                                                               "ring",
                                                               "binomial",
                                                               "scatter_all_gather",
                                                               "mpi"};

[[nodiscard]] constexpr std::string_view to_string(BuiltInAlgorithm algorithm) noexcept {
  return kBuiltInNames[static_cast<std::size_t>(algorithm)];
}

/// What COHORT_ALGORITHM says where the choice is Cohort's.
inline constexpr std::string_view kAutomatic = "auto";

[[nodiscard]] constexpr std::optional<BuiltInAlgorithm> find_built_in(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kBuiltInNames.size(); ++i) {
    if (kBuiltInNames[i] == name) return static_cast<BuiltInAlgorithm>(i);
  }
  return std::nullopt;
}

/// Whether there is anything to choose for calls of this kind.
[[nodiscard]] constexpr bool has_algorithms(CollectiveKind kind) noexcept {
  return kind < CollectiveKind::kBarrier;
}
inline constexpr std::size_t kKindsWithAlgorithms = static_cast<std::size_t>(CollectiveKind::kBarrier);

/// Whether an algorithm can carry out calls of this kind.
[[nodiscard]] constexpr bool applies_to(BuiltInAlgorithm algorithm, CollectiveKind kind) noexcept {
  switch (algorithm) {
    case BuiltInAlgorithm::kPieces:
    case BuiltInAlgorithm::kDirect:
    case BuiltInAlgorithm::kSingleCopy:
    case BuiltInAlgorithm::kMpi: return has_algorithms(kind);
    case BuiltInAlgorithm::kRecursiveDoubling:
    case BuiltInAlgorithm::kHalvingDoubling:
    case BuiltInAlgorithm::kRing: return kind == CollectiveKind::kAllReduce;
    case BuiltInAlgorithm::kBinomial:
    case BuiltInAlgorithm::kScatterAllGather: return kind == CollectiveKind::kBroadcast;
  }
  return false;
}

}  // namespace cohort
