// How a dataset is divided among the workers, each of which describes the whole dataset.
#pragma once

#include <utility>

#include <cohort/base/error.h>
#include <cohort/input/detail/dataset_node.h>
#include <cohort/input/split.h>

namespace cohort {

enum class AutoShardPolicy {
  kOff,   ///< not at all: each worker has the whole dataset, or what the program gave it
  kAuto,  ///< by files where the dataset reads a list of them, otherwise by data
  kFile,  ///< worker w of W reads every W-th file, from the w-th on
  kData,  ///< each worker reads everything, and keeps its replicas' parts of each batch
  kHint,  ///< each `shard(Shard::hint())` in the dataset becomes `shard({W, w})`
};

namespace detail {

/// The part of a dataset that a worker reads, and the policy that chose it.
template <class Element>
struct WorkerShard {
  DatasetNodePtr<Element> dataset;
  AutoShardPolicy policy;  ///< the one that took effect, not kAuto
};

/// Warns once, on the first worker, that every worker reads everything although the program did not ask for
/// it.
void warn_of_shared_reading(const WorkerPlace& place);

template <class Element>
[[nodiscard]] WorkerShard<Element> auto_shard(const DatasetNodePtr<Element>& dataset, AutoShardPolicy policy,
                                              const WorkerPlace& place) {
  const Shard shard{.count = place.workers, .index = place.worker};
  if (policy == AutoShardPolicy::kHint) {
    DatasetNodePtr<Element> hinted = dataset->with_hints_as(shard);
    return {hinted != nullptr ? std::move(hinted) : dataset, AutoShardPolicy::kHint};
  }
  if (policy == AutoShardPolicy::kOff || policy == AutoShardPolicy::kData || place.workers == 1)
    return {dataset, policy == AutoShardPolicy::kOff ? AutoShardPolicy::kOff : AutoShardPolicy::kData};
  if (DatasetNodePtr<Element> files = dataset->with_files_of(shard))
    return {std::move(files), AutoShardPolicy::kFile};
  if (policy == AutoShardPolicy::kFile) {
    throw InvalidArgument(
        "AutoShardPolicy::kFile: the dataset reads no files that {} workers could divide among themselves; "
        "use kData, or kOff for a dataset that differs between workers already",
        place.workers);
  }
  warn_of_shared_reading(place);
  return {dataset, AutoShardPolicy::kData};
}

}  // namespace detail
}  // namespace cohort
