// Variables in shards, plain ones and ones that servers keep: lines that were recorded of plain ones are
// replayed with both, and both must give the same.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <cohort/server/sharded_variable.h>

#include "server_threads.h"
#include "sharded.h"

namespace cohort::conformance {

/// A variable of these rows, made where the calling thread makes variables.
[[nodiscard]] ShardedVariable in_shards(const Tensor& whole, const ShardLayout& layout);

[[nodiscard]] Json show_shards(const ShardedVariable& variable);

/// What is done with a line's variable.
using ShardedUse = std::function<Json(const Record&, const ShardedVariable&)>;

/// This process, and servers that all lines share from the first one on.
class ShardedPlaces {
 public:
  /// What comes of `scenario` in both places.
  [[nodiscard]] Json everywhere(const std::function<Json()>& scenario);

  /// Lines whose `use` begins with the variable that they describe.
  [[nodiscard]] static Family family(const std::shared_ptr<ShardedPlaces>& places,
                                     std::vector<std::string_view> patterns, const ShardedUse& use,
                                     std::vector<FamilyDifference> differences = {});

 private:
  std::optional<ServerThreads> servers_;
  std::optional<ParameterServerStrategy> strategy_;
};

}  // namespace cohort::conformance
