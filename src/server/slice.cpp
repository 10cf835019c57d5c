#include <cohort/server/slice.h>

#include <algorithm>

#include <cohort/base/error.h>

namespace cohort {

AxisRange Slice::on(std::int64_t extent) const {
  if (step == 0) throw InvalidArgument("a slice has the step 0; it must be positive or negative");
  // Backwards, the place before the first position is an end, too.
  const bool forward = step > 0;
  const std::int64_t lowest = forward ? 0 : -1;
  const std::int64_t highest = forward ? extent : extent - 1;
  const auto on_axis = [&](std::int64_t place) {
    return std::clamp(place < 0 ? place + extent : place, lowest, highest);
  };
  const std::int64_t from = begin ? on_axis(*begin) : (forward ? lowest : highest);
  const std::int64_t to = end ? on_axis(*end) : (forward ? highest : lowest);
  const std::int64_t distance = forward ? to - from : from - to;
  if (distance <= 0) return {};
  // Unsigned, since the lowest step has no positive counterpart.
  const auto length = forward ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const auto count = static_cast<std::int64_t>((static_cast<std::uint64_t>(distance) - 1) / length) + 1;
  return {.first = from, .step = step, .count = count};
}

}  // namespace cohort
