// A partitioner says into how many shards a variable is cut: one count per axis, of which only the first may
// be other than 1, since variables are cut into groups of rows. The three classes here are partitioners, and
// so is any function of a shape and a dtype.
//
//   partitioner = MinSizePartitioner({.min_shard_bytes = 256 << 10, .max_shards = 2});
//
// Immutable values, which any thread may call. A variable without elements is one shard to all three classes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>

namespace cohort {

using Partitioner = std::function<std::vector<int>(const Shape& shape, DType dtype)>;

/// The same number of shards for every variable, but at most one per row.
class FixedShardsPartitioner {
 public:
  /// @throws InvalidArgument unless `num_shards` is at least 1.
  explicit FixedShardsPartitioner(int num_shards);

  /// `axis` is the one that is cut; negative axes count from the end.
  /// @throws InvalidArgument naming the shape and the axis when it has no such axis.
  [[nodiscard]] std::vector<int> operator()(const Shape& shape, DType dtype, int axis = 0) const;

 private:
  int num_shards_;
};

struct MinSizePartitionerOptions {
  std::int64_t min_shard_bytes = 256 << 10;
  int max_shards = 1;
};

/// As many shards as there may be without making them smaller than `min_shard_bytes`.
class MinSizePartitioner {
 public:
  /// @throws InvalidArgument for an option below 1.
  explicit MinSizePartitioner(MinSizePartitionerOptions options = {});

  /// As FixedShardsPartitioner's.
  [[nodiscard]] std::vector<int> operator()(const Shape& shape, DType dtype, int axis = 0) const;

 private:
  MinSizePartitionerOptions options_;
};

struct MaxSizePartitionerOptions {
  std::int64_t max_shard_bytes = 0;  ///< has no default: a shard may be larger only if it is a single row
  int max_shards = std::numeric_limits<int>::max();  ///< goes before `max_shard_bytes`
};

/// As few shards as there may be without making them larger than `max_shard_bytes`.
class MaxSizePartitioner {
 public:
  /// @throws InvalidArgument for an option below 1.
  explicit MaxSizePartitioner(MaxSizePartitionerOptions options);

  /// As FixedShardsPartitioner's.
  [[nodiscard]] std::vector<int> operator()(const Shape& shape, DType dtype, int axis = 0) const;

 private:
  MaxSizePartitionerOptions options_;
};

/// How many shards a variable gets: what `partitioner` returns for it, checked, and at most one per row. A
/// scalar is never cut, nor anything where `partitioner` is empty.
/// @throws InvalidArgument when the counts are no list of a count of at least 1 followed by ones.
[[nodiscard]] int shard_count(const Partitioner& partitioner, const Shape& shape, DType dtype);

}  // namespace cohort
