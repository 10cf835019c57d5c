// Where a new variable goes: whether it is cut into shards, and which server keeps each of them. The servers
// take turns, a turn per variable and per shard, so that the shards of a large variable lie on different
// ones. Programs that create the same variables in the same order get the same placement.
//
// Not thread-safe: its owner serialises calls.
#pragma once

#include <optional>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>
#include <cohort/server/partitioners.h>
#include <cohort/server/shard_layout.h>

namespace cohort {

struct ShardPlacement {
  std::optional<ShardLayout> layout = {};  ///< none for a variable that is not cut
  std::vector<int> servers = {};           ///< of each shard; one for a variable that is not cut
};

class ShardPlacer {
 public:
  /// An empty `partitioner` cuts nothing. @throws InvalidArgument for fewer than one server.
  ShardPlacer(Partitioner partitioner, int servers);

  /// Takes the turns that the variable needs. @throws InvalidArgument for a partitioner that returns nonsense
  /// (`shard_count`), and what the partitioner throws; then nobody's turn is over.
  [[nodiscard]] ShardPlacement place(const Shape& shape, DType dtype);

 private:
  Partitioner partitioner_;
  int servers_;
  int next_ = 0;
};

}  // namespace cohort
