#include "selection.h"

#include <algorithm>
#include <cstring>

#include <cohort/base/error.h>
#include <cohort/server/slice.h>

namespace cohort {

namespace {

/// The positions of one axis, as a caller's term selects them.
AxisRange range_of(const IndexTerm& term, int axis, const Shape& shape) {
  const std::int64_t extent = shape[axis];
  if (const auto* slice = std::get_if<Slice>(&term)) return slice->on(extent);
  const std::int64_t position = std::get<std::int64_t>(term);
  if (position < -extent || position >= extent) {
    throw InvalidArgument("index {} is out of range for axis {} of {}, which has {} positions", position,
                          axis, to_string(shape), extent);
  }
  return {.first = position < 0 ? position + extent : position, .step = 1, .count = 1};
}

bool takes_an_axis(const IndexTerm& term) {
  return std::holds_alternative<std::int64_t>(term) || std::holds_alternative<Slice>(term);
}

/// How many of the innermost axes are taken whole.
std::size_t whole_axes(const Shape& shape, std::span<const AxisRange> axes) {
  std::size_t whole = 0;
  while (whole < axes.size()) {
    const std::size_t axis = axes.size() - whole - 1;
    if (axes[axis] != AxisRange{.first = 0, .step = 1, .count = shape.extents()[axis]}) break;
    ++whole;
  }
  return whole;
}

/// Copies blocks of `block` bytes, the elements below the last of `axes`, whose neighbours lie `strides`
/// bytes apart. Returns where the next one goes.
std::byte* copy_blocks(const std::byte* from, std::span<const AxisRange> axes,
                       std::span<const std::size_t> strides, std::size_t block, std::byte* to) {
  if (axes.empty()) {
    std::memcpy(to, from, block);
    return to + block;
  }
  const AxisRange& range = axes.front();
  if (axes.size() == 1 && range.step == 1) {
    const std::size_t bytes = static_cast<std::size_t>(range.count) * block;
    if (bytes != 0) std::memcpy(to, from + static_cast<std::size_t>(range.first) * block, bytes);
    return to + bytes;
  }
  for (std::int64_t index = 0; index < range.count; ++index) {
    const std::byte* const position = from + static_cast<std::size_t>(range[index]) * strides.front();
    to = copy_blocks(position, axes.subspan(1), strides.subspan(1), block, to);
  }
  return to;
}

}  // namespace

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

Selection select(const Index& index, const Shape& shape) {
  const auto named = std::ranges::count_if(index, takes_an_axis);
  if (named > shape.rank()) {
    throw InvalidArgument("an index of {} numbers and slices into {}, which has {} axes", named,
                          to_string(shape), shape.rank());
  }
  Selection selection;
  std::vector<std::int64_t> extents;
  const auto take_whole_axes = [&](std::ptrdiff_t count) {
    for (; count > 0; --count) {
      const std::int64_t extent = shape[static_cast<int>(selection.axes.size())];
      selection.axes.push_back({.first = 0, .step = 1, .count = extent});
      extents.push_back(extent);
    }
  };

  bool has_ellipsis = false;
  for (const IndexTerm& term : index) {
    if (std::holds_alternative<NewAxis>(term)) {
      extents.push_back(1);
    } else if (std::holds_alternative<Ellipsis>(term)) {
      if (has_ellipsis) throw InvalidArgument("an index into {} has several Ellipses", to_string(shape));
      has_ellipsis = true;
      take_whole_axes(shape.rank() - named);
    } else {
      selection.axes.push_back(range_of(term, static_cast<int>(selection.axes.size()), shape));
      if (std::holds_alternative<Slice>(term)) extents.push_back(selection.axes.back().count);
    }
  }
  take_whole_axes(shape.rank() - std::ssize(selection.axes));
  selection.shape = Shape(extents);
  return selection;
}

std::vector<std::int64_t> marked_rows(const Tensor& mask, std::int64_t rows) {
  if (mask.dtype() != DType::kBool || mask.shape() != Shape{rows}) {
    throw InvalidArgument("a mask is {}; it must be bool[{}], with one element per row", describe(mask),
                          rows);
  }
  const Tensor on_host = mask.on_host();
  const std::span<const bool> marks = on_host.span<bool>();
  std::vector<std::int64_t> marked;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (marks[static_cast<std::size_t>(row)]) marked.push_back(row);
  }
  return marked;
}

void copy_selected(const Tensor& source, std::span<const AxisRange> axes, std::span<std::byte> to) {
  COHORT_CHECK(is_cpu(source) && std::ssize(axes) == source.shape().rank());
  if (to.empty()) return;
  const std::span<const std::int64_t> extents = source.shape().extents();
  const std::size_t whole = whole_axes(source.shape(), axes);
  const std::span<const AxisRange> cut = axes.first(axes.size() - whole);
  std::vector<std::size_t> strides(axes.size());
  std::size_t block = size_of(source.dtype());
  std::size_t stride = block;
  for (std::size_t axis = axes.size(); axis-- > 0;) {
    if (axis + 1 == cut.size()) block = stride;
    strides[axis] = stride;
    stride *= static_cast<std::size_t>(extents[axis]);
  }
  if (cut.empty()) block = stride;
  const std::byte* const end = copy_blocks(source.data(), cut, strides, block, to.data());
  COHORT_CHECK(end == to.data() + to.size());
}

}  // namespace cohort
