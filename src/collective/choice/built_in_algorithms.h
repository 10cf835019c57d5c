// The algorithms that COHORT_ALGORITHM can name and that no program registers: the protocols of a node
// (node/protocol.h), the algorithms between nodes that are in the table of network/lane_algorithms.cpp, and
// the collectives of the library below the transport.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include <cohort/collective/collective_kind.h>

#include "collective/node/protocol.h"

namespace cohort {

namespace network {
struct LaneAlgorithm;
}

struct BuiltInAlgorithm {
  std::string_view name;
  std::optional<CollectiveKind> kind = {};                 ///< unset: every kind that has algorithms
  std::optional<node::Protocol> protocol = {};             ///< on a node
  const network::LaneAlgorithm* lane_algorithm = nullptr;  ///< between nodes
  bool of_transport = false;                               ///< between nodes: TransportCollectives

  /// Whether it can execute calls of this kind.
  [[nodiscard]] bool applies_to(CollectiveKind called) const noexcept {
    return kind ? *kind == called : has_algorithms(called);
  }
};

[[nodiscard]] std::span<const BuiltInAlgorithm> built_in_algorithms();

/// Null if there is none of this name.
[[nodiscard]] const BuiltInAlgorithm* find_built_in(std::string_view name);

/// The setting of COHORT_ALGORITHM that asks for the library's collectives.
inline constexpr std::string_view kTransportAlgorithm = "mpi";

/// The setting that leaves the choice to Cohort.
inline constexpr std::string_view kAutomatic = "auto";

}  // namespace cohort
