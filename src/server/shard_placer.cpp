#include "shard_placer.h"

#include <utility>

#include <cohort/base/error.h>

namespace cohort {

ShardPlacer::ShardPlacer(Partitioner partitioner, int servers)
    : partitioner_(std::move(partitioner)), servers_(servers) {
  if (servers < 1)
    throw InvalidArgument("variables cannot be placed on {} servers; at least one is needed", servers);
}

ShardPlacement ShardPlacer::place(const Shape& shape, DType dtype) {
  const int shards = shard_count(partitioner_, shape, dtype);
  ShardPlacement placement;
  if (shards > 1) placement.layout.emplace(shape[0], shards);
  for (int shard = 0; shard < shards; ++shard) {
    placement.servers.push_back(next_);
    next_ = (next_ + 1) % servers_;
  }
  return placement;
}

}  // namespace cohort
