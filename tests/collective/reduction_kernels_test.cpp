// Every kernel on every instruction set gives the bits of a plain loop over the elements.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/collective/reduction.h>

#include "kernel_test.h"

namespace cohort {
namespace {

using Place = GuardedBuffer::Place;

constexpr std::size_t kMostElements = 4099;
constexpr std::size_t kSizes[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1000, kMostElements};
constexpr std::size_t kInputCounts[] = {1, 2, 3, 4, 5, 8};
constexpr std::size_t kMostInputs = 8;
constexpr std::size_t kMostOutputs = 3;

/// Elements of one input: any bits, and often those where mistakes hide.
template <class T>
std::vector<T> inputs_of(std::size_t elements, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values;
  for (std::size_t i = 0; i < elements; ++i) {
    if constexpr (std::is_same_v<T, bool>) {
      values.push_back(random() % 2 == 0);
    } else if constexpr (std::is_integral_v<T>) {
      values.push_back(static_cast<T>(random()));
    } else if constexpr (HalfElement<T>) {
      // An eighth of all bits of float16 are subnormal, infinite or NaN.
      const auto bits = static_cast<std::uint16_t>(random());
      values.push_back(random() % 4 == 0 ? T(static_cast<float>(bits % 97) / 16) : T::from_bits(bits));
    } else {
      using Limits = std::numeric_limits<T>;
      const T special[] = {T(0),
                           -T(0),
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::max(),
                           Limits::denorm_min(),
                           -Limits::denorm_min(),
                           Limits::min(),
                           Limits::quiet_NaN()};
      const auto kind = random() % 16;
      values.push_back(kind < std::size(special)
                           ? special[kind]
                           : static_cast<T>(std::ldexp(static_cast<double>(random() % 4099) - 2048,
                                                       static_cast<int>(random() % 40) - 20)));
    }
  }
  return values;
}

/// The type in which elements are combined; integers wrap in the unsigned type of the same size,
/// or in a larger one.
template <class T>
using Computed = std::conditional_t<HalfElement<T>, float, T>;

template <class T>
T combine(ReduceOp op, T a, T b) {
  if (op == ReduceOp::kMin || op == ReduceOp::kMax) {
    const bool smallest = op == ReduceOp::kMin;
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
      if (a == b) return std::signbit(a) == smallest ? a : b;
    }
    return (b < a) == smallest ? b : a;
  }
  if constexpr (std::is_floating_point_v<T>) {
    return op == ReduceOp::kProd ? a * b : a + b;
  } else if constexpr (std::is_same_v<T, bool>) {
    throw Internal("{} of bool is not legal", to_string(op));
  } else {
    const std::uint64_t x = static_cast<std::make_unsigned_t<T>>(a),
                        y = static_cast<std::make_unsigned_t<T>>(b);
    return static_cast<T>(op == ReduceOp::kProd ? x * y : x + y);
  }
}

/// Whatever NaNs meet, the result is always the same one.
template <class T>
T with_one_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
  return value;
}

template <class T>
T reduced(ReduceOp op, const std::vector<std::vector<T>>& inputs, std::size_t count, std::size_t element) {
  auto result = convert_element<Computed<T>>(static_cast<T>(inputs[0][element]));
  for (std::size_t i = 1; i < count; ++i)
    result = combine(op, result, convert_element<Computed<T>>(static_cast<T>(inputs[i][element])));
  if (op == ReduceOp::kMean) result = static_cast<Computed<T>>(result / static_cast<Computed<T>>(count));
  return convert_element<T>(with_one_nan(result));
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
::testing::AssertionResult same(std::span<const std::byte> actual, const std::vector<T>& expected) {
  if constexpr (!std::is_same_v<T, bool>) {
    if (std::ranges::equal(actual, std::as_bytes(std::span(expected)))) return ::testing::AssertionSuccess();
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const T wanted = expected[i];
    T got;
    std::memcpy(&got, actual.data() + i * sizeof(T), sizeof(T));
    if (!std::ranges::equal(bytes_of(got), bytes_of(wanted))) {
      return ::testing::AssertionFailure() << "element " << i << " is " << convert_element<double>(got)
                                           << " instead of " << convert_element<double>(wanted);
    }
  }
  return ::testing::AssertionSuccess();
}

struct Pass {
  ReduceOp op;
  std::size_t elements, inputs, outputs;
  Place place;
  bool in_place;
  ReductionHints hints;

  friend std::ostream& operator<<(std::ostream& out, const Pass& pass) {
    return out << to_string(pass.op) << " of " << pass.inputs << " inputs of " << pass.elements
               << " elements to " << pass.outputs << " outputs, place " << static_cast<int>(pass.place)
               << (pass.in_place ? ", in place" : "") << ", stream " << pass.hints.stream
               << pass.hints.stream_others << ", take over " << pass.hints.take_over;
  }
};

/// One buffer for each input and output of the largest pass.
class Buffers {
 public:
  GuardedBuffer& operator[](std::size_t i) {
    while (buffers_.size() <= i)
      buffers_.push_back(std::make_unique<GuardedBuffer>(kMostElements * sizeof(double)));
    return *buffers_[i];
  }

 private:
  std::vector<std::unique_ptr<GuardedBuffer>> buffers_;
};

template <class T>
void expect_exact(const Pass& pass, Buffers& buffers, const std::vector<std::vector<T>>& values,
                  const std::vector<T>& expected) {
  SCOPED_TRACE(::testing::Message() << to_string(kDTypeOf<T>) << " " << pass);
  std::size_t used = 0;
  const auto place_next = [&] {
    return buffers[used++].place(pass.place, pass.elements * sizeof(T), sizeof(T));
  };
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (std::size_t i = 0; i < pass.inputs; ++i) {
    std::byte* input = place_next();
    inputs.push_back(input);
    if (pass.elements == 0) continue;
    if constexpr (std::is_same_v<T, bool>) {
      std::transform(values[i].begin(), values[i].begin() + static_cast<std::ptrdiff_t>(pass.elements), input,
                     [](bool value) { return static_cast<std::byte>(value); });
    } else {
      std::memcpy(input, values[i].data(), pass.elements * sizeof(T));
    }
  }
  for (std::size_t o = 0; o < pass.outputs; ++o)
    outputs.push_back(pass.in_place && o < pass.inputs ? buffers[pass.inputs - 1 - o].data() : place_next());

  reduce_elements(kDTypeOf<T>, pass.op, inputs, outputs, pass.elements, pass.hints);

  for (const std::byte* output : outputs) EXPECT_TRUE(same<T>({output, pass.elements * sizeof(T)}, expected));
  for (std::size_t b = 0; b < used; ++b) EXPECT_TRUE(buffers[b].is_intact());
}

template <class T>
void expect_exact(ReduceOp op) {
  std::vector<std::vector<T>> values;
  for (unsigned seed = 0; seed < kMostInputs; ++seed) values.push_back(inputs_of<T>(kMostElements, seed));
  const ReductionHints all_hints[] = {
      {},
      {.stream = true},
      {.stream_others = true, .prefetch_outputs_bytes = 1024},
      {.take_over = 0},
  };
  Buffers buffers;
  for (const std::size_t inputs : kInputCounts) {
    for (const std::size_t elements : kSizes) {
      std::vector<T> expected;
      for (std::size_t e = 0; e < elements; ++e) expected.push_back(reduced(op, values, inputs, e));
      for (std::size_t outputs = 1; outputs <= kMostOutputs; ++outputs) {
        for (const Place place : {Place::kAtLine, Place::kPastLine, Place::kAtGuardPage}) {
          for (const ReductionHints& hints : all_hints) {
            for (const bool in_place : {false, true})
              expect_exact<T>({op, elements, inputs, outputs, place, in_place, hints}, buffers, values,
                              expected);
          }
          if (::testing::Test::HasFailure()) return;  // one is enough to read
        }
      }
    }
  }
}

class ReductionKernels : public OnEveryTarget {};

TEST_P(ReductionKernels, GiveTheBitsOfAPlainLoop) {
  for (const DType dtype : kAllDTypes) {
    for (const ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProd}) {
      try {
        require_legal(op, dtype);
      } catch (const InvalidArgument&) {
        EXPECT_THROW(static_cast<void>(reduction_kernel(dtype, op)), Internal);
        continue;
      }
      visit_dtype(dtype, [&]<class T>(std::type_identity<T>) { expect_exact<T>(op); });
    }
  }
}

/// Every 16-bit float plus another of any size: ties, subnormals, overflow.
template <class Half>
void expect_rounded_once() {
  std::vector<Half> a, b;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    a.push_back(Half::from_bits(static_cast<std::uint16_t>(bits)));
    b.push_back(Half::from_bits(static_cast<std::uint16_t>((bits * 2654435761u) >> 16)));
  }
  std::vector<Half> expected;
  for (std::size_t i = 0; i < a.size(); ++i)
    expected.push_back(Half(with_one_nan(static_cast<float>(a[i]) + static_cast<float>(b[i]))));
  std::vector<Half> sums(a.size());
  const std::byte* inputs[] = {reinterpret_cast<const std::byte*>(a.data()),
                               reinterpret_cast<const std::byte*>(b.data())};
  reduce_elements(kDTypeOf<Half>, ReduceOp::kSum, inputs, reinterpret_cast<std::byte*>(sums.data()),
                  sums.size());
  EXPECT_TRUE(same<Half>(std::as_bytes(std::span(sums)), expected));
}

TEST_P(ReductionKernels, RoundSixteenBitFloatsToNearestEven) {
  expect_rounded_once<float16>();
  expect_rounded_once<bfloat16>();
}

TEST_P(ReductionKernels, CarryNaNThroughEveryOperator) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a(100, nan), b(100, 1.0f);
  for (const ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProd}) {
    for (const auto& [first, second] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      std::vector<float> result(a.size());
      const std::byte* inputs[] = {reinterpret_cast<const std::byte*>(first->data()),
                                   reinterpret_cast<const std::byte*>(second->data())};
      reduce_elements(DType::kFloat32, op, inputs, reinterpret_cast<std::byte*>(result.data()),
                      result.size());
      EXPECT_THAT(result, ::testing::Each(::testing::IsNan())) << to_string(op);
    }
  }
}

TEST_P(ReductionKernels, DivideByRoundingOnce) {
  for (const std::size_t elements : {1u, 3u, 17u, 1000u}) {
    auto values = inputs_of<float>(elements, 5);
    std::vector<float> expected = values;
    for (float& value : expected) value = with_one_nan(value / 7);
    divide_elements(DType::kFloat32, reinterpret_cast<std::byte*>(values.data()), elements, 7);
    EXPECT_TRUE(same<float>(std::as_bytes(std::span(values)), expected));
  }
}

INSTANTIATE_TEST_SUITE_P(, ReductionKernels, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         target_name);

}  // namespace
}  // namespace cohort
