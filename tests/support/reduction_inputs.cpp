#include "reduction_inputs.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

namespace cohort::testing {
namespace {

std::int64_t exact_value(int rank, std::size_t index, ReduceOp op, DType dtype) {
  const std::size_t mixed = static_cast<std::size_t>(rank) * 7 + index * 3;
  if (dtype == DType::kBool) return mixed % 3 == 0;
  // Products stay powers of two, and below 2^63 since ranks from 64 on have ones alone; they wrap in narrower
  // integers. Sums of up to 51 members are exact in bfloat16's 8 bits; those of more are rounded once.
  if (op == ReduceOp::kProd) return rank < 64 && mixed % 2 == 1 ? 2 : 1;
  return static_cast<std::int64_t>(mixed % 5 + 1);
}

template <class T>
T exact_element(int members, std::size_t index, ReduceOp op, DType dtype) {
  std::int64_t result = exact_value(0, index, op, dtype);
  for (int rank = 1; rank < members; ++rank) {
    const std::int64_t value = exact_value(rank, index, op, dtype);
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kMean: result += value; break;
      case ReduceOp::kMin: result = std::min(result, value); break;
      case ReduceOp::kMax: result = std::max(result, value); break;
      case ReduceOp::kProd: result *= value; break;
    }
  }
  if (op != ReduceOp::kMean) return convert_element<T>(result);
  // One division and one rounding, in the type in which members' values are combined.
  if constexpr (HalfElement<T>)
    return T(static_cast<float>(result) / static_cast<float>(members));
  else
    return static_cast<T>(static_cast<T>(result) / static_cast<T>(members));
}

}  // namespace

Tensor exact_inputs(int rank, DType dtype, ReduceOp op, std::size_t elements) {
  Tensor tensor = Tensor::uninitialized({static_cast<std::int64_t>(elements)}, dtype);
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    std::size_t index = 0;
    for (T& value : tensor.span<T>()) value = convert_element<T>(exact_value(rank, index++, op, dtype));
  });
  return tensor;
}

Tensor exact_result(int members, DType dtype, ReduceOp op, std::size_t elements) {
  Tensor tensor = Tensor::uninitialized({static_cast<std::int64_t>(elements)}, dtype);
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    std::size_t index = 0;
    for (T& value : tensor.span<T>()) value = exact_element<T>(members, index++, op, dtype);
  });
  return tensor;
}

namespace {

std::uint64_t mixed(int rank, std::size_t index) {
  std::uint64_t bits = (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15u + index;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

/// A NaN of the member's own.
float nan_of(int rank) {
  const auto place = static_cast<std::uint32_t>(rank);
  return std::bit_cast<float>(0x7fc00000u | (place % 2) << 31 | (place + 1) << 17);
}

double floating_value(int rank, std::size_t index, ReduceOp op) {
  const std::uint64_t bits = mixed(rank, index);
  const double mantissa = 0.5 + static_cast<double>(bits >> 11) * 0x1p-54;
  if (op == ReduceOp::kProd) return 2 * mantissa;
  constexpr std::array<double, 24> kPowers = [] {  // from 2^-12 on: sums of eight stay finite in float16
    std::array<double, 24> powers{};
    for (double power = 0x1p-12; double& element : powers) {
      element = power;
      power *= 2;
    }
    return powers;
  }();
  return (bits % 3 == 0 ? -mantissa : mantissa) * kPowers[bits % kPowers.size()];
}

template <class T>
T value_of(int rank, std::size_t index, ReduceOp op) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(mixed(rank, index));
  } else {
    switch (index % 211) {
      case 3: return T(nan_of(rank));
      case 4: return T(rank % 2 == 0 ? 0.0f : -0.0f);
      case 5: return T(rank % 2 == 0 ? std::numeric_limits<float>::infinity() : -1.0f);
      default: return convert_element<T>(floating_value(rank, index, op));
    }
  }
}

/// The type in which elements are combined.
template <class T>
using Computed = std::conditional_t<HalfElement<T>, float, T>;

template <class T>
T extremum(bool smallest, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) == smallest ? a : b;
  }
  return (b < a) == smallest ? b : a;
}

template <class T>
T combine(ReduceOp op, T a, T b) {
  if (op == ReduceOp::kMin || op == ReduceOp::kMax) return extremum(op == ReduceOp::kMin, a, b);
  if constexpr (std::is_floating_point_v<T>) {
    return op == ReduceOp::kProd ? a * b : a + b;
  } else if constexpr (std::is_same_v<T, bool>) {
    throw Internal("{} of bool is not legal", to_string(op));
  } else {
    const std::uint64_t x = static_cast<std::make_unsigned_t<T>>(a);
    const std::uint64_t y = static_cast<std::make_unsigned_t<T>>(b);
    return static_cast<T>(op == ReduceOp::kProd ? x * y : x + y);
  }
}

template <class T>
T reduced(int members, std::size_t index, ReduceOp op) {
  const auto value = [&](int rank) { return static_cast<Computed<T>>(value_of<T>(rank, index, op)); };
  Computed<T> result = value(0);
  for (int rank = 1; rank < members; ++rank) result = combine(op, result, value(rank));
  if constexpr (!std::is_integral_v<T>) {
    if (op == ReduceOp::kMean) result /= static_cast<Computed<T>>(members);
    if (std::isnan(result)) result = std::numeric_limits<Computed<T>>::quiet_NaN();
  }
  return static_cast<T>(result);
}

template <class Value>
Tensor filled_with(DType dtype, std::size_t elements, Value value) {
  Tensor tensor = Tensor::uninitialized({static_cast<std::int64_t>(elements)}, dtype);
  visit_dtype(dtype, [&]<class T>(std::type_identity<T> type) {
    std::size_t index = 0;
    for (T& element : tensor.span<T>()) element = value(type, index++);
  });
  return tensor;
}

Tensor computed_result(int members, DType dtype, ReduceOp op, std::size_t elements) {
  return filled_with(dtype, elements, [&]<class T>(std::type_identity<T> /*type*/, std::size_t index) {
    return reduced<T>(members, index, op);
  });
}

}  // namespace

Tensor ordered_inputs(int rank, DType dtype, ReduceOp op, std::size_t elements) {
  return filled_with(dtype, elements, [&]<class T>(std::type_identity<T> /*type*/, std::size_t index) {
    return value_of<T>(rank, index, op);
  });
}

Tensor ordered_result(int members, DType dtype, ReduceOp op, std::size_t elements) {
  static std::mutex mutex;
  static std::map<std::tuple<int, DType, ReduceOp, std::size_t>, Tensor> results;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = results.try_emplace({members, dtype, op, elements});
  if (is_new) at->second = computed_result(members, dtype, op, elements);
  return at->second;
}

}  // namespace cohort::testing
