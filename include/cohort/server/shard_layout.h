// Which rows of a variable lie in which shard: shard 0 has the first ones, shard 1 those that follow, and so
// on. Usually the shards are nearly equal, the first ones a row longer when the rows do not divide evenly
// (the "div" rule); a layout of other extents does as well. Arithmetic alone: it knows nothing of elements,
// of servers or of where shards are.
//
// An immutable value. Rows are numbered from 0: callers resolve negative ones beforehand (slice.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <cohort/input/split.h>
#include <cohort/server/slice.h>

namespace cohort {

/// A row of a shard.
struct ShardRow {
  int shard = 0;
  std::int64_t row = 0;  ///< within the shard

  friend bool operator==(const ShardRow&, const ShardRow&) = default;
};

/// What one shard has of a list of rows.
struct ShardRows {
  int shard = 0;
  std::vector<std::int64_t> rows = {};       ///< within the shard, in the list's order
  std::vector<std::int64_t> positions = {};  ///< where in the list each of them stands

  friend bool operator==(const ShardRows&, const ShardRows&) = default;
};

/// What one shard has of an evenly spaced range of rows.
struct ShardRange {
  int shard = 0;
  AxisRange rows = {};        ///< within the shard, never empty
  std::int64_t position = 0;  ///< where in the range its first row stands; the others follow it

  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

class ShardLayout {
 public:
  /// `rows` rows in `shards` nearly equal shards.
  /// @throws InvalidArgument for negative rows, or fewer than one shard.
  ShardLayout(std::int64_t rows, int shards);

  /// Shards of the given numbers of rows.
  /// @throws InvalidArgument for no shards, or a negative number of rows.
  explicit ShardLayout(std::span<const std::int64_t> extents);

  [[nodiscard]] std::int64_t rows() const noexcept { return begins_.back(); }
  [[nodiscard]] int shards() const noexcept { return static_cast<int>(begins_.size()) - 1; }

  /// The rows of `shard`. @throws InvalidArgument when there is no such shard.
  [[nodiscard]] RowRange range(int shard) const;

  /// How many rows each shard has.
  [[nodiscard]] std::vector<std::int64_t> extents() const;

  /// Where `row` lies. @throws InvalidArgument unless it is from 0 to rows()-1.
  [[nodiscard]] ShardRow find(std::int64_t row) const;

  /// What each shard has of `rows`, in the order of the shards; those that have none are left out. A row may
  /// occur several times. @throws InvalidArgument naming the position of a row that does not exist.
  [[nodiscard]] std::vector<ShardRows> split(std::span<const std::int64_t> rows) const;
  [[nodiscard]] std::vector<ShardRows> split(std::span<const std::int32_t> rows) const;

  /// What each shard has of `range`, in the order of the range: backwards for a negative step.
  /// @throws InvalidArgument when it reaches beyond the rows.
  [[nodiscard]] std::vector<ShardRange> split(const AxisRange& range) const;

  friend bool operator==(const ShardLayout&, const ShardLayout&) = default;

 private:
  /// The shard of a row that exists.
  [[nodiscard]] int owner(std::int64_t row) const;
  template <class Index>
  [[nodiscard]] std::vector<ShardRows> split_rows(std::span<const Index> rows) const;

  std::vector<std::int64_t> begins_;  // the first row of each shard, and after them the number of rows
};

/// The number of rows of each shard, for example `[3, 3, 2, 2]`.
[[nodiscard]] std::string to_string(const ShardLayout& layout);

}  // namespace cohort
