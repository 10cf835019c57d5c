#include "shard_placer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/server/partitioners.h>

namespace cohort {
namespace {

void require_at_least_1(std::string_view partitioner, std::string_view option, std::int64_t value) {
  if (value >= 1) return;
  throw InvalidArgument("{}: {} is {}; it must be at least 1", partitioner, option, value);
}

/// `shards` along `axis`, but at least 1 and at most one per row.
std::vector<int> counts_along(int axis, const Shape& shape, double shards) {
  const auto rows = static_cast<double>(shape[axis]);
  std::vector<int> counts(static_cast<std::size_t>(shape.rank()), 1);
  counts[static_cast<std::size_t>(axis)] = static_cast<int>(std::max(1.0, std::min(shards, rows)));
  return counts;
}

// Bytes are counted in floating point, which no shape overflows.
double bytes_of(const Shape& shape, DType dtype) {
  return static_cast<double>(shape.elements()) * static_cast<double>(size_of(dtype));
}

}  // namespace

FixedShardsPartitioner::FixedShardsPartitioner(int num_shards) : num_shards_(num_shards) {
  require_at_least_1("FixedShardsPartitioner", "num_shards", num_shards);
}

std::vector<int> FixedShardsPartitioner::operator()(const Shape& shape, DType /*dtype*/, int axis) const {
  return counts_along(shape.normalize_axis(axis), shape, num_shards_);
}

MinSizePartitioner::MinSizePartitioner(MinSizePartitionerOptions options) : options_(options) {
  require_at_least_1("MinSizePartitioner", "min_shard_bytes", options.min_shard_bytes);
  require_at_least_1("MinSizePartitioner", "max_shards", options.max_shards);
}

std::vector<int> MinSizePartitioner::operator()(const Shape& shape, DType dtype, int axis) const {
  // Rounded up, so the last shard may be smaller than the least size: the original's rule.
  const double shards = std::ceil(bytes_of(shape, dtype) / static_cast<double>(options_.min_shard_bytes));
  return counts_along(shape.normalize_axis(axis), shape, std::min<double>(shards, options_.max_shards));
}

MaxSizePartitioner::MaxSizePartitioner(MaxSizePartitionerOptions options) : options_(options) {
  require_at_least_1("MaxSizePartitioner", "max_shard_bytes", options.max_shard_bytes);
  require_at_least_1("MaxSizePartitioner", "max_shards", options.max_shards);
}

std::vector<int> MaxSizePartitioner::operator()(const Shape& shape, DType dtype, int axis) const {
  const int cut = shape.normalize_axis(axis);
  if (shape.elements() == 0) return counts_along(cut, shape, 1);
  const auto rows = static_cast<double>(shape[cut]);
  const double bytes_per_row = bytes_of(shape, dtype) / rows;
  const double rows_per_shard =
      std::max(1.0, std::floor(static_cast<double>(options_.max_shard_bytes) / bytes_per_row));
  return counts_along(cut, shape, std::min<double>(std::ceil(rows / rows_per_shard), options_.max_shards));
}

int shard_count(const Partitioner& partitioner, const Shape& shape, DType dtype) {
  if (!partitioner || shape.rank() == 0) return 1;
  const std::vector<int> counts = partitioner(shape, dtype);
  const auto refuse = [&](std::string_view why) {
    throw InvalidArgument("variable_partitioner returned [{}] for {}{}: {}", fmt::join(counts, ", "),
                          to_string(dtype), to_string(shape), why);
  };
  if (counts.empty()) refuse("it must return one count per axis");
  if (counts.front() < 1) refuse("the first count must be at least 1");
  if (std::ranges::any_of(counts.begin() + 1, counts.end(), [](int count) { return count != 1; })) {
    refuse("variables are cut along their first axis only, so all other counts must be 1");
  }
  return static_cast<int>(std::clamp<std::int64_t>(shape[0], 1, counts.front()));
}

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
