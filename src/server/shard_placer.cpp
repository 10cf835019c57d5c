#include "shard_placer.h"

#include <utility>

#include <cohort/base/error.h>

namespace cohort {

ShardPlacer::ShardPlacer(Partitioner partitioner, int servers)
    : partitioner_(std::move(partitioner)), servers_(servers) {
  if (servers < 1)
    throw InvalidArgument("variables cannot be placed on {} servers; at least one is needed", servers);
}

std::optional<ShardLayout> ShardPlacer::cut(const Shape& shape, DType dtype) const {
  const int shards = shard_count(partitioner_, shape, dtype);
  if (shards == 1) return std::nullopt;
  return ShardLayout(shape[0], shards);
}

int ShardPlacer::next_server() noexcept { return std::exchange(next_, (next_ + 1) % servers_); }

}  // namespace cohort
