// Which positions of an axis are meant: a Slice as the caller writes it, which may leave out its ends or
// count from the last position, and the AxisRange that it is on an axis of a given extent.
//
//   Slice{.begin = 2, .end = -1}.on(10)   // positions 2 to 8
//   Slice{.step = -1}.on(10)              // 9 down to 0
//
// Plain values.
#pragma once

#include <cstdint>
#include <optional>

namespace cohort {

/// The positions first, first + step, ...: `count` of them, each within the axis.
struct AxisRange {
  std::int64_t first = 0;
  std::int64_t step = 1;  ///< not 0
  std::int64_t count = 0;

  /// The position of number `index`, from 0 to count-1.
  [[nodiscard]] std::int64_t operator[](std::int64_t index) const { return first + index * step; }

  friend bool operator==(const AxisRange&, const AxisRange&) = default;
};

/// Positions `begin`, `begin + step`, ... before `end`. Negative ends count from behind, and ends beyond the
/// axis stand for its own; left out, they take in the whole axis.
struct Slice {
  std::optional<std::int64_t> begin = {};
  std::optional<std::int64_t> end = {};
  std::int64_t step = 1;

  /// The positions on an axis of `extent`; empty ones are {0, 1, 0}.
  /// @throws InvalidArgument when the step is 0.
  [[nodiscard]] AxisRange on(std::int64_t extent) const;

  friend bool operator==(const Slice&, const Slice&) = default;
};

}  // namespace cohort
