// The numbers of the model: plain arrays, which know nothing of the library. An element is a long double,
// which holds every 64-bit integer; `stored` says what is left of it in a type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cohort::model {

enum class Type { kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF16, kBF16, kF32, kF64, kBool };
inline constexpr int kTypes = 13;

using Number = long double;
using Extents = std::vector<std::int64_t>;

struct Array {
  Type type = Type::kF32;
  Extents extents;
  std::vector<Number> elements;
};

/// A tensor, or rows of one.
struct Leaf {
  Array values;
  std::optional<Array> rows = {};  ///< which rows `values` are; absent: it is a tensor
  Extents dense = {};              ///< of the tensor whose rows they are
};

/// The leaves of a structure, in order.
using Leaves = std::vector<Leaf>;

[[nodiscard]] bool is_floating(Type type);
[[nodiscard]] int bits(Type type);

/// The distance of 1 to the next number of a floating type; 0 of the others, which are exact.
[[nodiscard]] Number spacing(Type type);

/// `number` in `type`: integers wrap, floating numbers are rounded to the nearest, and overflow to infinity.
[[nodiscard]] Number stored(Type type, Number number);

[[nodiscard]] std::size_t count(const Extents& extents);
[[nodiscard]] Array converted(const Array& array, Type type);
[[nodiscard]] Array filled(Type type, Extents extents, Number number);
[[nodiscard]] Array scalar(Type type, Number number);

/// `function` of each element, or of the elements of two arrays of one form, stored in the first one's type.
[[nodiscard]] Array mapped(const Array& a, const std::function<Number(Number)>& function);
[[nodiscard]] Array mapped(const Array& a, const Array& b,
                           const std::function<Number(Number, Number)>& function);

/// Along one axis: arrays one after the other, and a part of one.
[[nodiscard]] Array concatenated(const std::vector<Array>& parts, int axis);
[[nodiscard]] Array sliced(const Array& array, int axis, std::int64_t begin, std::int64_t end);

/// The sums along the marked axes, which leave the extents. Not rounded to the type.
[[nodiscard]] Array summed_along(const Array& array, const std::vector<bool>& axes);

[[nodiscard]] std::string text(const Array& array);
[[nodiscard]] std::string text(const Leaves& leaves);

}  // namespace cohort::model
