// Cohort's kernels, and the bodies that they run. A body is a plain struct that is passed to the GPU as its
// kernel's only argument; `run(first, step)` does items first, first + step, ... of `items()`. On a GPU each
// thread runs it with its own number and the number of all threads. The stand-in of the tests runs it on the
// host with (0, 1), so what is computed is tested without a GPU; how it is launched is not.
//
// The arithmetic is that of CPU tensors, so the bits are the same. Everything here is constexpr: that is
// what lets the CUDA compiler use the functions on both sides.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <cohort/device/dtype.h>

#include "device/rules/arithmetic.h"
#include "device/rules/optimizer_step.h"

namespace cohort::cuda {

/// Calls `visitor(std::type_identity<T>{})`; `visit_dtype` throws, which a kernel cannot.
template <class Visitor>
constexpr void visit_element_type(DType dtype, const Visitor& visitor) {
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
}

template <class Visitor>
constexpr void visit_floating_type(DType dtype, const Visitor& visitor) {
  switch (dtype) {
    case DType::kFloat16: return visitor(std::type_identity<float16>{});
    case DType::kBFloat16: return visitor(std::type_identity<bfloat16>{});
    case DType::kFloat32: return visitor(std::type_identity<float>{});
    case DType::kFloat64: return visitor(std::type_identity<double>{});
    default: return;
  }
}

template <class T>
constexpr T combine_by(ElementOperator op, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return b;  // bools can only be replaced
  } else {
    switch (op) {
      case ElementOperator::kAdd: return combine<Add>(a, b);
      case ElementOperator::kSubtract: return combine<Subtract>(a, b);
      case ElementOperator::kMultiply: return combine<Multiply>(a, b);
      case ElementOperator::kDivide: return combine<Divide>(a, b);
      case ElementOperator::kMinimum: return combine<Minimum>(a, b);
      case ElementOperator::kMaximum: return combine<Maximum>(a, b);
      case ElementOperator::kReplace: return b;
    }
    return b;
  }
}

struct Fill {
  void* data;
  std::size_t elements;
  DType dtype;
  double value;

  [[nodiscard]] constexpr std::size_t items() const { return elements; }
  constexpr void run(std::size_t first, std::size_t step) const {
    visit_element_type(dtype, [&]<class T>(std::type_identity<T>) {
      const T element = convert_element<T>(value);
      for (std::size_t i = first; i < elements; i += step) static_cast<T*>(data)[i] = element;
    });
  }
};

/// Converts by way of the widest type of the same kind, which holds every value of the others: one conversion
/// from each type and one to each, instead of one for each pair.
struct Cast {
  const void* from;
  void* to;
  std::size_t elements;
  DType from_dtype;
  DType to_dtype;

  [[nodiscard]] constexpr std::size_t items() const { return elements; }
  constexpr void run(std::size_t first, std::size_t step) const {
    visit_element_type(from_dtype, [&]<class From>(std::type_identity<From>) {
      using Widest =
          std::conditional_t<HalfElement<From> || std::is_floating_point_v<From>, double,
                             std::conditional_t<std::is_signed_v<From>, std::int64_t, std::uint64_t>>;
      for (std::size_t i = first; i < elements; i += step)
        store(convert_element<Widest>(static_cast<const From*>(from)[i]), i);
    });
  }

 private:
  template <class Widest>
  constexpr void store(Widest value, std::size_t i) const {
    visit_element_type(to_dtype, [&]<class To>(std::type_identity<To>) {
      static_cast<To*>(to)[i] = convert_element<To>(value);
    });
  }
};

struct Combine {
  void* target;
  const void* value;
  std::size_t elements;
  DType dtype;
  ElementOperator op;

  [[nodiscard]] constexpr std::size_t items() const { return elements; }
  constexpr void run(std::size_t first, std::size_t step) const {
    visit_element_type(dtype, [&]<class T>(std::type_identity<T>) {
      for (std::size_t i = first; i < elements; i += step) {
        T& element = static_cast<T*>(target)[i];
        element = combine_by(op, element, static_cast<const T*>(value)[i]);
      }
    });
  }
};

/// Rows named twice are changed in order: an item is one column of the target rows whose number has one
/// remainder by kRemainders, and goes through all indices.
struct CombineRows {
  static constexpr std::size_t kRemainders = 64;

  void* target;
  const void* indices;
  const void* values;
  std::size_t rows;
  std::size_t width;
  DType dtype;
  ElementOperator op;
  bool wide_indices;  ///< int64, not int32

  [[nodiscard]] constexpr std::size_t items() const { return rows == 0 ? 0 : width * kRemainders; }
  constexpr void run(std::size_t first, std::size_t step) const {
    visit_element_type(dtype, [&]<class T>(std::type_identity<T>) {
      for (std::size_t item = first; item < items(); item += step) {
        const std::size_t column = item % width;
        const std::size_t remainder = item / width;
        for (std::size_t i = 0; i < rows; ++i) {
          const std::size_t row = index(i);
          if (row % kRemainders != remainder) continue;
          T& element = static_cast<T*>(target)[row * width + column];
          element = combine_by(op, element, static_cast<const T*>(values)[i * width + column]);
        }
      }
    });
  }

 private:
  [[nodiscard]] constexpr std::size_t index(std::size_t i) const {
    return wide_indices ? static_cast<std::size_t>(static_cast<const std::int64_t*>(indices)[i])
                        : static_cast<std::size_t>(static_cast<const std::int32_t*>(indices)[i]);
  }
};

/// The sums, products, minima and maxima of reduction.h, with its rules.
struct Reduce {
  static constexpr std::size_t kMostInputs = 64;

  const void* inputs[kMostInputs];
  std::size_t count;
  void* output;
  std::size_t elements;
  std::size_t divisor;
  DType dtype;
  ElementOperator op;

  [[nodiscard]] constexpr std::size_t items() const { return elements; }
  constexpr void run(std::size_t first, std::size_t step) const {
    visit_element_type(dtype, [&]<class T>(std::type_identity<T>) {
      using Operand = std::conditional_t<HalfElement<T>, float, T>;
      for (std::size_t i = first; i < elements; i += step) {
        auto result = static_cast<Operand>(static_cast<const T*>(inputs[0])[i]);
        for (std::size_t k = 1; k < count; ++k)
          result = both(result, static_cast<Operand>(static_cast<const T*>(inputs[k])[i]));
        static_cast<T*>(output)[i] = finished<T>(result);
      }
    });
  }

 private:
  template <class W>
  constexpr W both(W a, W b) const {
    if constexpr (std::is_same_v<W, bool>) {
      return op == ElementOperator::kMinimum ? a && b : a || b;
    } else if (op == ElementOperator::kMinimum || op == ElementOperator::kMaximum) {
      if constexpr (std::is_floating_point_v<W>) {
        if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<W>::quiet_NaN();
        // -0 is less than +0.
        if (a == b) return (op == ElementOperator::kMinimum) == is_negative(a) ? a : b;
      }
      return (op == ElementOperator::kMinimum) == (a < b) ? a : b;
    } else {
      return op == ElementOperator::kAdd ? combine<Add>(a, b) : combine<Multiply>(a, b);
    }
  }

  static constexpr bool is_negative(float value) { return (std::bit_cast<std::uint32_t>(value) >> 31) != 0; }
  static constexpr bool is_negative(double value) { return (std::bit_cast<std::uint64_t>(value) >> 63) != 0; }

  template <class T, class W>
  constexpr T finished(W value) const {
    if constexpr (std::is_floating_point_v<W>) {
      if (divisor > 1) value /= static_cast<W>(divisor);
      if (std::isnan(value)) value = std::numeric_limits<W>::quiet_NaN();
    }
    return T(value);
  }
};

/// A step of the optimizer whose rule it is.
template <class Rule>
struct Update {
  void* variable;
  const void* gradient;
  void* slots[Rule::kSlots + 1];  ///< one more, since there are no empty arrays
  void* master;                   ///< null if there is none
  void* average;                  ///< likewise
  std::size_t elements;
  DType dtype;
  CommonStep common;
  Rule rule;

  [[nodiscard]] constexpr std::size_t items() const { return elements; }
  constexpr void run(std::size_t first, std::size_t step) const {
    visit_floating_type(dtype, [&]<class T>(std::type_identity<T>) {
      if constexpr (HalfElement<T>)
        if (master != nullptr) return update<T, float>(first, step, std::make_index_sequence<Rule::kSlots>{});
      update<T, T>(first, step, std::make_index_sequence<Rule::kSlots>{});
    });
  }

 private:
  /// S is the type of the slots.
  template <class T, class S, std::size_t... kSlot>
  constexpr void update(std::size_t first, std::size_t step, std::index_sequence<kSlot...>) const {
    const ElementStep<Rule, T, S> element(rule, common);
    for (std::size_t i = first; i < elements; i += step) {
      T& value = static_cast<T*>(variable)[i];
      const T slope = static_cast<const T*>(gradient)[i];
      if (common.is_plain())
        element.update(value, slope, static_cast<S*>(slots[kSlot])[i]...);
      else
        element.update_all(value, slope, place<S>(master, i), place<S>(average, i),
                           static_cast<S*>(slots[kSlot])[i]...);
    }
  }
  template <class S>
  [[nodiscard]] static constexpr S* place(void* slot, std::size_t i) {
    return slot == nullptr ? nullptr : static_cast<S*>(slot) + i;
  }
};

using UpdateBySgd = Update<SgdStep<double>>;
using UpdateByMomentum = Update<MomentumStep<double>>;
using UpdateByAdam = Update<AdamStep<double, false>>;
using UpdateByAmsGrad = Update<AdamStep<double, true>>;
using UpdateByAdamax = Update<AdamaxStep<double>>;
using UpdateByNadam = Update<NadamStep<double>>;
using UpdateByAdagrad = Update<AdagradStep<double>>;
using UpdateByAdadelta = Update<AdadeltaStep<double>>;
using UpdateByRmsProp = Update<RmsPropStep<double, false, false>>;
using UpdateByRmsPropMomentum = Update<RmsPropStep<double, false, true>>;
using UpdateByCenteredRmsProp = Update<RmsPropStep<double, true, false>>;
using UpdateByCenteredRmsPropMomentum = Update<RmsPropStep<double, true, true>>;
using UpdateByFtrl = Update<FtrlStep<double>>;
using UpdateByLion = Update<LionStep<double>>;
using UpdateByMoments = Update<MomentsStep<double>>;
using UpdateByLamb = Update<LambStep<double>>;
/// Packs or unpacks many tensors of one dtype in one launch.
struct CopyEach {
  static constexpr std::size_t kMostPieces = 64;

  struct Piece {
    const void* from;
    void* to;
    std::size_t end;  ///< elements of this piece and those before it
  };
  Piece pieces[kMostPieces];
  std::size_t count;
  DType dtype;

  [[nodiscard]] constexpr std::size_t items() const { return count == 0 ? 0 : pieces[count - 1].end; }
  constexpr void run(std::size_t first, std::size_t step) const {
    visit_element_type(dtype, [&]<class T>(std::type_identity<T>) {
      std::size_t piece = 0;
      for (std::size_t i = first; i < items(); i += step) {
        while (i >= pieces[piece].end) ++piece;
        const std::size_t begin = piece == 0 ? 0 : pieces[piece - 1].end;
        static_cast<T*>(pieces[piece].to)[i - begin] = static_cast<const T*>(pieces[piece].from)[i - begin];
      }
    });
  }
};

}  // namespace cohort::cuda

/// Calls `macro(Body)` for every body.
#define COHORT_CUDA_BODIES(macro)                                                                            \
  macro(Fill) macro(Cast) macro(Combine) macro(CombineRows) macro(Reduce) macro(CopyEach) macro(UpdateBySgd) \
      macro(UpdateByMomentum) macro(UpdateByAdam) macro(UpdateByAmsGrad) macro(UpdateByAdamax)               \
          macro(UpdateByNadam) macro(UpdateByAdagrad) macro(UpdateByAdadelta) macro(UpdateByRmsProp)         \
              macro(UpdateByRmsPropMomentum) macro(UpdateByCenteredRmsProp)                                  \
                  macro(UpdateByCenteredRmsPropMomentum) macro(UpdateByFtrl) macro(UpdateByLion)             \
                      macro(UpdateByMoments) macro(UpdateByLamb)

namespace cohort::cuda {

/// The kernel of each body, which CUDA launches.
template <class Body>
[[nodiscard]] const void* kernel_of();

#define COHORT_CUDA_DECLARE(Body) \
  template <>                     \
  const void* kernel_of<Body>();
COHORT_CUDA_BODIES(COHORT_CUDA_DECLARE)
#undef COHORT_CUDA_DECLARE

}  // namespace cohort::cuda
