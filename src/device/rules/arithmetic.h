// The operators that updates apply to single elements, on CPUs and GPUs alike, and the type in which the
// rules of optimizers compute them. Integers wrap, 16-bit floats are computed in float32 and rounded once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <cohort/device/dtype.h>

namespace cohort {

enum class ElementOperator : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMinimum,
  kMaximum,
  kReplace,
};

struct Add {
  static constexpr ElementOperator kName = ElementOperator::kAdd;
  template <class T>
  static constexpr T of(T a, T b) {
    return a + b;
  }
};
struct Subtract {
  static constexpr ElementOperator kName = ElementOperator::kSubtract;
  template <class T>
  static constexpr T of(T a, T b) {
    return a - b;
  }
};
struct Multiply {
  static constexpr ElementOperator kName = ElementOperator::kMultiply;
  template <class T>
  static constexpr T of(T a, T b) {
    return a * b;
  }
};
struct Divide {
  static constexpr ElementOperator kName = ElementOperator::kDivide;
  template <class T>
  static constexpr T of(T a, T b) {
    // The smallest integer has no counterpart, so its quotient by -1 wraps, to itself.
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
      return b == T{-1} ? static_cast<T>(0 - static_cast<std::uint64_t>(a)) : static_cast<T>(a / b);
    else
      return static_cast<T>(a / b);
  }
};
struct Minimum {
  static constexpr ElementOperator kName = ElementOperator::kMinimum;
  template <class T>
  static constexpr T of(T a, T b) {
    return std::min(a, b);
  }
};
struct Maximum {
  static constexpr ElementOperator kName = ElementOperator::kMaximum;
  template <class T>
  static constexpr T of(T a, T b) {
    return std::max(a, b);
  }
};
struct Replace {
  static constexpr ElementOperator kName = ElementOperator::kReplace;
  template <class T>
  static constexpr T of(T /*a*/, T b) {
    return b;
  }
};

/// Operators whose lower bits depend on the operands' lower bits alone, so that unsigned arithmetic wraps.
template <class Operator>
inline constexpr bool kWraps =
    std::is_same_v<Operator, Add> || std::is_same_v<Operator, Subtract> || std::is_same_v<Operator, Multiply>;

template <class Operator, Element T>
[[nodiscard]] constexpr T combine(T a, T b) {
  if constexpr (HalfElement<T>)
    return T(Operator::of(static_cast<float>(a), static_cast<float>(b)));
  else if constexpr (std::is_integral_v<T> && kWraps<Operator>)
    return static_cast<T>(Operator::of(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  else
    return Operator::of(a, b);
}

/// In which elements of optimizers are computed.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace cohort
