// Which elements of a variable are meant, axis by axis, as in Python's `v[3, ..., 1:]`:
//
//   Index{3, Ellipsis{}, Slice{.begin = 1}}
//
// A number takes one position and leaves the axis out of the result, a Slice takes several; negative ones
// count from the end. An Ellipsis stands for all axes that no other term names, and where there is none, they
// follow the last term. A NewAxis makes an axis of extent 1. Plain values.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include <cohort/server/slice.h>

namespace cohort {

struct Ellipsis {
  friend bool operator==(const Ellipsis&, const Ellipsis&) = default;
};

struct NewAxis {
  friend bool operator==(const NewAxis&, const NewAxis&) = default;
};

using IndexTerm = std::variant<std::int64_t, Slice, Ellipsis, NewAxis>;
using Index = std::vector<IndexTerm>;

}  // namespace cohort
