// What a communicator may choose from: the algorithms that this program has registered, and
// what COHORT_ALGORITHM asks for. The same on all members, which compare it when they make
// the communicator. Immutable.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <cohort/cluster/worker.h>
#include <cohort/collective/algorithm.h>

#include "built_in_algorithms.h"
#include "cluster/descriptor_exchange.h"

namespace cohort {

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
