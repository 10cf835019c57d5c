#include <cohort/server/shard_layout.h>

#include <algorithm>
#include <cstddef>

#include <fmt/ranges.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

/// How many steps of `step` lead from `row` to further ones of `rows` rows. Dividing by the step itself,
/// whose magnitude may have no positive counterpart.
std::int64_t steps_left(std::int64_t row, std::int64_t rows, std::int64_t step) {
  return step > 0 ? (rows - 1 - row) / step : -(row / step);
}

}  // namespace

ShardLayout::ShardLayout(std::int64_t rows, int shards) {
  if (rows < 0 || shards < 1) {
    throw InvalidArgument("cannot lay out {} rows in {} shards; at least one shard is needed", rows, shards);
  }
  begins_.reserve(static_cast<std::size_t>(shards) + 1);
  for (int shard = 0; shard < shards; ++shard) begins_.push_back(part_of(rows, shard, shards).begin);
  begins_.push_back(rows);
}

ShardLayout::ShardLayout(std::span<const std::int64_t> extents) {
  if (extents.empty()) throw InvalidArgument("a layout of no shards; at least one is needed");
  begins_.reserve(extents.size() + 1);
  begins_.push_back(0);
  for (const std::int64_t extent : extents) {
    std::int64_t end = 0;
    if (extent < 0 || __builtin_add_overflow(begins_.back(), extent, &end)) {
      throw InvalidArgument("shards cannot have [{}] rows", fmt::join(extents, ", "));
    }
    begins_.push_back(end);
  }
}

RowRange ShardLayout::range(int shard) const {
  if (shard < 0 || shard >= shards()) {
    throw InvalidArgument("there is no shard {}; shards are 0 to {}", shard, shards() - 1);
  }
  const auto index = static_cast<std::size_t>(shard);
  return {begins_[index], begins_[index + 1]};
}

std::vector<std::int64_t> ShardLayout::extents() const {
  std::vector<std::int64_t> extents;
  extents.reserve(begins_.size() - 1);
  for (std::size_t shard = 0; shard + 1 < begins_.size(); ++shard) {
    extents.push_back(begins_[shard + 1] - begins_[shard]);
  }
  return extents;
}

int ShardLayout::owner(std::int64_t row) const {
  // Empty shards begin where the next one does, so the last that begins at or before the row has it.
  const auto after = std::upper_bound(begins_.begin(), begins_.end() - 1, row);
  return static_cast<int>(after - begins_.begin()) - 1;
}

ShardRow ShardLayout::find(std::int64_t row) const {
  if (row < 0 || row >= rows())
    throw InvalidArgument("row {} does not exist: there are {} rows", row, rows());
  const int shard = owner(row);
  return {.shard = shard, .row = row - begins_[static_cast<std::size_t>(shard)]};
}

template <class Index>
std::vector<ShardRows> ShardLayout::split_rows(std::span<const Index> rows) const {
  // Twice over the rows, so that each list is allocated once.
  std::vector<int> owners(rows.size());
  std::vector<std::size_t> counts(begins_.size() - 1);
  for (std::size_t position = 0; position < rows.size(); ++position) {
    const std::int64_t row = rows[position];
    if (row < 0 || row >= this->rows()) {
      throw InvalidArgument("row {} at position {} does not exist: there are {} rows", row, position,
                            this->rows());
    }
    owners[position] = owner(row);
    ++counts[static_cast<std::size_t>(owners[position])];
  }

  std::vector<ShardRows> parts;
  std::vector<std::size_t> part_of_shard(counts.size());
  for (std::size_t shard = 0; shard < counts.size(); ++shard) {
    if (counts[shard] == 0) continue;
    part_of_shard[shard] = parts.size();
    ShardRows& part = parts.emplace_back(ShardRows{.shard = static_cast<int>(shard)});
    part.rows.reserve(counts[shard]);
    part.positions.reserve(counts[shard]);
  }
  for (std::size_t position = 0; position < rows.size(); ++position) {
    const auto shard = static_cast<std::size_t>(owners[position]);
    ShardRows& part = parts[part_of_shard[shard]];
    part.rows.push_back(rows[position] - begins_[shard]);
    part.positions.push_back(static_cast<std::int64_t>(position));
  }
  return parts;
}

std::vector<ShardRows> ShardLayout::split(std::span<const std::int64_t> rows) const {
  return split_rows(rows);
}

std::vector<ShardRows> ShardLayout::split(std::span<const std::int32_t> rows) const {
  return split_rows(rows);
}

std::vector<ShardRange> ShardLayout::split(const AxisRange& range) const {
  if (range.count == 0) return {};
  if (range.step == 0 || range.first < 0 || range.first >= rows() || range.count < 0 ||
      range.count - 1 > steps_left(range.first, rows(), range.step)) {
    throw InvalidArgument("{} rows from {} on in steps of {} do not exist: there are {} rows", range.count,
                          range.first, range.step, rows());
  }
  std::vector<ShardRange> parts;
  for (std::int64_t position = 0; position < range.count;) {
    const ShardRow at = find(range[position]);
    const RowRange shard = this->range(at.shard);
    const std::int64_t count =
        std::min(range.count - position, steps_left(at.row, shard.end - shard.begin, range.step) + 1);
    parts.push_back({.shard = at.shard,
                     .rows = {.first = at.row, .step = range.step, .count = count},
                     .position = position});
    position += count;
  }
  return parts;
}

std::string to_string(const ShardLayout& layout) {
  return fmt::format("[{}]", fmt::join(layout.extents(), ", "));
}

}  // namespace cohort
