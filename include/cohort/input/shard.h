// One of several disjoint parts of a dataset: every `count`-th element, from the `index`-th on.
#pragma once

namespace cohort {

struct Shard {
  int count = 1;
  int index = 0;

  /// A placeholder for the shard that a strategy fills in under AutoShardPolicy::kHint.
  [[nodiscard]] static constexpr Shard hint() { return {-1, -1}; }

  friend bool operator==(const Shard&, const Shard&) = default;
};

}  // namespace cohort
