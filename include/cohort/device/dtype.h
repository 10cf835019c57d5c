// The element types that tensors may have, their names, sizes and C++ counterparts,
// and `visit_dtype`, the one place where a run-time dtype becomes a C++ type.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include <cohort/device/float16.h>

namespace cohort {

enum class DType : std::uint8_t {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kBool,
};

inline constexpr std::array kAllDTypes{
    DType::kInt8,    DType::kInt16,   DType::kInt32,  DType::kInt64,   DType::kUInt8,
    DType::kUInt16,  DType::kUInt32,  DType::kUInt64, DType::kFloat16, DType::kBFloat16,
    DType::kFloat32, DType::kFloat64, DType::kBool,
};

/// The name as in messages and options, for example `float32`.
[[nodiscard]] std::string_view to_string(DType dtype) noexcept;

/// The inverse of `to_string`. @throws InvalidArgument listing the names.
[[nodiscard]] DType parse_dtype(std::string_view name);

namespace detail {
inline constexpr std::array<std::uint8_t, kAllDTypes.size()> kElementBytes{1, 2, 4, 8, 1, 2, 4,
                                                                           8, 2, 2, 4, 8, 1};
}

/// Bytes per element.
[[nodiscard]] constexpr std::size_t size_of(DType dtype) noexcept {
  return detail::kElementBytes[static_cast<std::size_t>(dtype)];
}

/// float16 and bfloat16: stored in 16 bits, computed in float32.
[[nodiscard]] constexpr bool is_half(DType dtype) noexcept {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

[[nodiscard]] constexpr bool is_floating(DType dtype) noexcept {
  return is_half(dtype) || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

namespace detail {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<std::int8_t> : std::integral_constant<DType, DType::kInt8> {};
template <>
struct DTypeOf<std::int16_t> : std::integral_constant<DType, DType::kInt16> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<DType, DType::kInt32> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<DType, DType::kInt64> {};
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<DType, DType::kUInt8> {};
template <>
struct DTypeOf<std::uint16_t> : std::integral_constant<DType, DType::kUInt16> {};
template <>
struct DTypeOf<std::uint32_t> : std::integral_constant<DType, DType::kUInt32> {};
template <>
struct DTypeOf<std::uint64_t> : std::integral_constant<DType, DType::kUInt64> {};
template <>
struct DTypeOf<float16> : std::integral_constant<DType, DType::kFloat16> {};
template <>
struct DTypeOf<bfloat16> : std::integral_constant<DType, DType::kBFloat16> {};
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::kFloat32> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::kFloat64> {};
template <>
struct DTypeOf<bool> : std::integral_constant<DType, DType::kBool> {};

// `long` and `long long` have 64 bits, both; std::int64_t is one of them. The other one is an element, too,
// and is stored as the former, since memory of the one must not be read as the other.
using OtherInt64 = std::conditional_t<std::is_same_v<std::int64_t, long>, long long, long>;
using OtherUInt64 = std::make_unsigned_t<OtherInt64>;
static_assert(sizeof(OtherInt64) == sizeof(std::int64_t));
template <>
struct DTypeOf<OtherInt64> : std::integral_constant<DType, DType::kInt64> {};
template <>
struct DTypeOf<OtherUInt64> : std::integral_constant<DType, DType::kUInt64> {};

template <class T>
struct StoredAs : std::type_identity<T> {};
template <>
struct StoredAs<OtherInt64> : std::type_identity<std::int64_t> {};
template <>
struct StoredAs<OtherUInt64> : std::type_identity<std::uint64_t> {};

[[noreturn]] void throw_unknown_dtype(DType dtype);
}  // namespace detail

/// A C++ type that can be the element of a tensor.
template <class T>
concept Element = requires {
  detail::DTypeOf<std::remove_cv_t<T>>::value;
};

/// The type in which tensors store a T: T itself, but for `long long`, which is stored as std::int64_t.
template <Element T>
using StoredElement = typename detail::StoredAs<std::remove_cv_t<T>>::type;

/// One of the two 16-bit floating-point types.
template <class T>
concept HalfElement = std::same_as<T, float16> || std::same_as<T, bfloat16>;

/// The dtype of a C++ element type: `kDTypeOf<float> == DType::kFloat32`.
template <Element T>
inline constexpr DType kDTypeOf = detail::DTypeOf<std::remove_cv_t<T>>::value;

/// Calls `visitor(std::type_identity<T>{})` with the C++ type of `dtype`.
template <class Visitor>
decltype(auto) visit_dtype(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::kInt8: return visitor(std::type_identity<std::int8_t>{});
    case DType::kInt16: return visitor(std::type_identity<std::int16_t>{});
    case DType::kInt32: return visitor(std::type_identity<std::int32_t>{});
    case DType::kInt64: return visitor(std::type_identity<std::int64_t>{});
    case DType::kUInt8: return visitor(std::type_identity<std::uint8_t>{});
    case DType::kUInt16: return visitor(std::type_identity<std::uint16_t>{});
    case DType::kUInt32: return visitor(std::type_identity<std::uint32_t>{});
    case DType::kUInt64: return visitor(std::type_identity<std::uint64_t>{});
    case DType::kFloat16: return visitor(std::type_identity<float16>{});
    case DType::kBFloat16: return visitor(std::type_identity<bfloat16>{});
    case DType::kFloat32: return visitor(std::type_identity<float>{});
    case DType::kFloat64: return visitor(std::type_identity<double>{});
    case DType::kBool: return visitor(std::type_identity<bool>{});
  }
  detail::throw_unknown_dtype(dtype);
}

/// Converts one element; 16-bit floats go through float32, anything to bool is `!= 0`.
template <Element To, Element From>
[[nodiscard]] constexpr To convert_element(From value) noexcept {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (HalfElement<From>) {
    return convert_element<To>(static_cast<float>(value));
  } else if constexpr (HalfElement<To>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace cohort
