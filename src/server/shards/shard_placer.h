// Where new variables go: whether one is cut into shards, and which server keeps the next variable or shard.
// The servers take turns, so that the shards of a large variable lie on different ones. Programs that create
// the same variables in the same order get the same placement.
//
// Not thread-safe: its owner serialises turns.
#pragma once

#include <optional>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>
#include <cohort/server/partitioners.h>
#include <cohort/server/shard_layout.h>

namespace cohort {

class ShardPlacer {
 public:
  /// An empty `partitioner` cuts nothing. @throws InvalidArgument for fewer than one server.
  ShardPlacer(Partitioner partitioner, int servers);

  /// How a variable is cut; nothing for one that stays whole. Takes no turn.
  /// @throws InvalidArgument for a partitioner that returns nonsense (`shard_count`), and what the
  /// partitioner throws.
  [[nodiscard]] std::optional<ShardLayout> cut(const Shape& shape, DType dtype) const;

  /// Whose turn it is; the next call has the next one.
  [[nodiscard]] int next_server() noexcept;

 private:
  Partitioner partitioner_;
  int servers_;
  int next_ = 0;
};

}  // namespace cohort
