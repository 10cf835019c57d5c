#include "array.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace cohort::model {
namespace {

struct TypeForm {
  const char* name;
  int bits;
  int digits;  ///< of the significand; 0: an integer
  int least;   ///< exponent of the smallest normal number
  bool is_signed;
};

const TypeForm& form(Type type) {
  static constexpr std::array<TypeForm, kTypes> kForms{{{"int8", 8, 0, 0, true},
                                                        {"int16", 16, 0, 0, true},
                                                        {"int32", 32, 0, 0, true},
                                                        {"int64", 64, 0, 0, true},
                                                        {"uint8", 8, 0, 0, false},
                                                        {"uint16", 16, 0, 0, false},
                                                        {"uint32", 32, 0, 0, false},
                                                        {"uint64", 64, 0, 0, false},
                                                        {"float16", 16, 11, -14, true},
                                                        {"bfloat16", 16, 8, -126, true},
                                                        {"float32", 32, 24, -126, true},
                                                        {"float64", 64, 53, -1022, true},
                                                        {"bool", 1, 0, 0, false}}};
  return kForms.at(static_cast<std::size_t>(type));
}

Number wrapped(const TypeForm& form, Number number) {
  const Number size = std::ldexp(Number{1}, form.bits);
  Number rest = std::fmod(number, size);
  if (rest < 0) rest += size;
  return form.is_signed && rest >= size / 2 ? rest - size : rest;
}

Number rounded(const TypeForm& form, Number number) {
  if (number == 0 || !std::isfinite(number)) return number;
  const int exponent = std::max(std::ilogb(number), form.least);
  const Number unit = std::ldexp(Number{1}, exponent - form.digits + 1);
  const Number result = std::nearbyint(number / unit) * unit;
  const Number beyond = std::ldexp(Number{1}, 2 - form.least);
  return std::abs(result) < beyond ? result : std::copysign(std::numeric_limits<Number>::infinity(), number);
}

/// Elements before, along and behind an axis.
struct Parts {
  std::size_t outer = 1;
  std::size_t along = 1;
  std::size_t inner = 1;
};

Parts parts_of(const Extents& extents, int axis) {
  Parts parts;
  for (int i = 0; i < static_cast<int>(extents.size()); ++i) {
    const auto extent = static_cast<std::size_t>(extents[static_cast<std::size_t>(i)]);
    (i < axis ? parts.outer : i == axis ? parts.along : parts.inner) *= extent;
  }
  return parts;
}

}  // namespace

bool is_floating(Type type) { return form(type).digits > 0; }
int bits(Type type) { return form(type).bits; }
Number spacing(Type type) { return is_floating(type) ? std::ldexp(Number{1}, 1 - form(type).digits) : 0; }

Number stored(Type type, Number number) {
  if (type == Type::kBool) return number != 0 ? 1 : 0;
  return is_floating(type) ? rounded(form(type), number) : wrapped(form(type), std::trunc(number));
}

std::size_t count(const Extents& extents) {
  std::size_t product = 1;
  for (const std::int64_t extent : extents) product *= static_cast<std::size_t>(extent);
  return product;
}

Array converted(const Array& array, Type type) {
  Array result{type, array.extents, {}};
  for (const Number number : array.elements) result.elements.push_back(stored(type, number));
  return result;
}

Array filled(Type type, Extents extents, Number number) {
  const std::size_t elements = count(extents);
  return {type, std::move(extents), std::vector(elements, stored(type, number))};
}

Array scalar(Type type, Number number) { return filled(type, {}, number); }

Array mapped(const Array& a, const std::function<Number(Number)>& function) {
  Array result = a;
  for (Number& element : result.elements) element = stored(a.type, function(element));
  return result;
}

Array mapped(const Array& a, const Array& b, const std::function<Number(Number, Number)>& function) {
  Array result = a;
  for (std::size_t i = 0; i < a.elements.size(); ++i)
    result.elements[i] = stored(a.type, function(a.elements[i], b.elements[i]));
  return result;
}

Array concatenated(const std::vector<Array>& parts, int axis) {
  Array result{parts.front().type, parts.front().extents, {}};
  auto& length = result.extents[static_cast<std::size_t>(axis)];
  length = 0;
  for (const Array& part : parts) length += part.extents[static_cast<std::size_t>(axis)];
  const std::size_t outer = parts_of(result.extents, axis).outer;
  for (std::size_t i = 0; i < outer; ++i) {
    for (const Array& part : parts) {
      const Parts sizes = parts_of(part.extents, axis);
      const auto from = part.elements.begin() + static_cast<std::ptrdiff_t>(i * sizes.along * sizes.inner);
      result.elements.insert(result.elements.end(), from,
                             from + static_cast<std::ptrdiff_t>(sizes.along * sizes.inner));
    }
  }
  return result;
}

Array sliced(const Array& array, int axis, std::int64_t begin, std::int64_t end) {
  Array result{array.type, array.extents, {}};
  result.extents[static_cast<std::size_t>(axis)] = end - begin;
  const Parts sizes = parts_of(array.extents, axis);
  for (std::size_t i = 0; i < sizes.outer; ++i) {
    for (auto j = static_cast<std::size_t>(begin); j < static_cast<std::size_t>(end); ++j)
      for (std::size_t k = 0; k < sizes.inner; ++k)
        result.elements.push_back(array.elements[(i * sizes.along + j) * sizes.inner + k]);
  }
  return result;
}

Array summed_along(const Array& array, const std::vector<bool>& axes) {
  Array result = array;
  for (int axis = static_cast<int>(axes.size()) - 1; axis >= 0; --axis) {
    if (!axes[static_cast<std::size_t>(axis)]) continue;
    const Parts sizes = parts_of(result.extents, axis);
    std::vector<Number> sums(sizes.outer * sizes.inner, 0);
    for (std::size_t i = 0; i < result.elements.size(); ++i)
      sums[i / (sizes.along * sizes.inner) * sizes.inner + i % sizes.inner] += result.elements[i];
    result.elements = std::move(sums);
    result.extents.erase(result.extents.begin() + axis);
  }
  return result;
}

std::string text(const Array& array) {
  std::string result = fmt::format("{}[", form(array.type).name);
  for (std::size_t i = 0; i < array.extents.size(); ++i)
    result += fmt::format("{}{}", i == 0 ? "" : ",", array.extents[i]);
  result += "]{";
  for (std::size_t i = 0; i < array.elements.size(); ++i)
    result += fmt::format("{}{}", i == 0 ? "" : " ", array.elements[i]);
  return result + "}";
}

std::string text(const Leaves& leaves) {
  std::string result = "(";
  for (const Leaf& leaf : leaves) {
    if (result.size() > 1) result += ", ";
    result += text(leaf.values);
    if (leaf.rows) result += " as rows " + text(*leaf.rows) + fmt::format(" of {}", leaf.dense.front());
  }
  return result + ")";
}

}  // namespace cohort::model
