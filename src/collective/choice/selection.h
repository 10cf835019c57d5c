// Which algorithms there are for a collective, Cohort's own and those that this program has registered, and
// which of them a communicator may choose from.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/cluster/worker.h>
#include <cohort/collective/algorithm.h>
#include <cohort/collective/collective_kind.h>

#include "cluster/descriptor_exchange.h"

namespace cohort {

namespace node {
enum class Protocol : std::uint8_t;
}
namespace network {
struct LaneAlgorithm;
}

/// An algorithm that COHORT_ALGORITHM can name and that no program registers: a protocol of a node
/// (node/protocol.h), an algorithm between nodes that is in the table of network/lane_algorithms.cpp, or the
/// collectives of the library below the transport.
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

/// All of them; built_in_choices.cpp has them from node and network, which include this.
[[nodiscard]] std::span<const BuiltInAlgorithm> built_in_algorithms();

/// Null if there is none of this name.
[[nodiscard]] const BuiltInAlgorithm* find_built_in(std::string_view name);

/// The setting of COHORT_ALGORITHM that asks for the library's collectives.
inline constexpr std::string_view kTransportAlgorithm = "mpi";

/// The setting that leaves the choice to Cohort.
inline constexpr std::string_view kAutomatic = "auto";

/// The algorithms that programs have registered, for the life of the process: in the order of their names, so
/// that members that have registered the same agree on it.
[[nodiscard]] std::vector<std::shared_ptr<const Algorithm>> registered_algorithms();

/// What an algorithm's messages must fulfil, on a node and between nodes.
/// @throws InvalidArgument for a member or a tag that does not exist.
inline void require_legal_message(const Peers& peers, int other, int tag) {
  if (other < 0 || other >= peers.size() || other == peers.rank()) {
    throw InvalidArgument("an algorithm's message from or to member {}: the others of member {} are 0 to {}",
                          other, peers.rank(), peers.size() - 1);
  }
  if (tag < 0 || tag > Peers::kLargestTag)
    throw InvalidArgument("an algorithm's message has tag {}; tags are 0 to {}", tag, Peers::kLargestTag);
}

/// What a communicator may choose from: the registered algorithms, and what COHORT_ALGORITHM asks for. The
/// same on all members, which compare it when they make the communicator. Immutable.
class Selection {
 public:
  /// @throws InvalidArgument for a setting with an unknown name; the text lists the known ones.
  Selection(std::string_view setting, std::vector<std::shared_ptr<const Algorithm>> registered);

  /// This process's, once all workers are known to have the same. Collective over the workers; `exchange` may
  /// be null when there is one. @throws InvalidArgument naming the workers that differ.
  [[nodiscard]] static Selection agreed(std::span<const WorkerInfo> workers, const BlobExchange& exchange);

  /// The algorithm of Cohort's own that calls of this kind should use where they can; null for any.
  [[nodiscard]] const BuiltInAlgorithm* forced(CollectiveKind kind) const noexcept {
    return wants_[static_cast<std::size_t>(kind)].built_in;
  }

  struct Choice {
    const Algorithm* algorithm = nullptr;  ///< null for Cohort's own
    bool forced = false;
  };
  /// A registered algorithm, if one is wanted, or expected to be faster than Cohort's own at this call.
  [[nodiscard]] Choice choose(const CallShape& shape, const CostConstants& constants,
                              double (*seconds_of_built_in)(const CallShape&, const CostConstants&)) const;

  /// Whether there is nothing to choose from but Cohort's own.
  [[nodiscard]] bool has_registered() const noexcept { return !registered_.empty(); }

 private:
  struct Want {
    const BuiltInAlgorithm* built_in = nullptr;
    const Algorithm* registered = nullptr;
  };
  void want(std::string_view name, std::optional<CollectiveKind> kind);
  [[nodiscard]] std::string legal_names(std::optional<CollectiveKind> kind) const;

  std::vector<std::shared_ptr<const Algorithm>> registered_;
  std::array<Want, kCollectiveKinds> wants_;  ///< by kind
};

}  // namespace cohort
