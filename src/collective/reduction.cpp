#include <cohort/collective/reduction.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace cohort {
namespace {

/// The type in which elements of type T are combined.
template <class T>
using Accumulator = std::conditional_t<HalfElement<T>, float, T>;

/// Integer overflow wraps, so sums and products are taken in the unsigned type of the same size
/// (at least 32 bits wide: narrower ones would promote to int, where overflow is undefined).
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;

template <ReduceOp kOp, class T>
T combine(T a, T b) {
  if constexpr (kOp == ReduceOp::kMin || kOp == ReduceOp::kMax) {
    if constexpr (std::is_floating_point_v<T>) {
      // NaN wins; and -0 counts as less than +0, so that the order of operands never shows.
      if (std::isnan(a) || std::isnan(b)) return a + b;
      if (a == b) return (std::signbit(a) == (kOp == ReduceOp::kMin)) ? a : b;
    }
    return (kOp == ReduceOp::kMin) == (b < a) ? b : a;
  } else if constexpr (std::is_same_v<T, bool>) {
    throw Internal("{} of bool passed the check of legal operators", to_string(kOp));
  } else if constexpr (std::is_integral_v<T>) {
    using U = Wrapping<T>;
    if constexpr (kOp == ReduceOp::kProd)
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    else
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    if constexpr (kOp == ReduceOp::kProd)
      return a * b;
    else
      return a + b;
  }
}

/// Elements combined at a time: the accumulators of a block stay in the first-level cache,
/// and the inner loop runs along one input, which the compiler vectorises.
constexpr std::size_t kBlock = 512;

template <ReduceOp kOp, class T>
void reduce_typed(std::span<const std::byte* const> inputs, std::byte* output, std::size_t elements,
                  std::size_t divisor) {
  using A = Accumulator<T>;
  A sums[kBlock];
  auto* out = reinterpret_cast<T*>(output);
  for (std::size_t begin = 0; begin < elements; begin += kBlock) {
    const std::size_t count = std::min(kBlock, elements - begin);
    const auto* first = reinterpret_cast<const T*>(inputs.front()) + begin;
    for (std::size_t i = 0; i < count; ++i) sums[i] = convert_element<A>(first[i]);
    for (const std::byte* input : inputs.subspan(1)) {
      const auto* in = reinterpret_cast<const T*>(input) + begin;
      for (std::size_t i = 0; i < count; ++i) sums[i] = combine<kOp>(sums[i], convert_element<A>(in[i]));
    }
    if constexpr (std::is_floating_point_v<A>) {
      if (divisor != 1) {
        for (std::size_t i = 0; i < count; ++i) sums[i] /= static_cast<A>(divisor);
      }
    }
    for (std::size_t i = 0; i < count; ++i) out[begin + i] = convert_element<T>(sums[i]);
  }
}

template <ReduceOp kOp>
void reduce_any(DType dtype, std::span<const std::byte* const> inputs, std::byte* output,
                std::size_t elements, std::size_t divisor = 1) {
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    reduce_typed<kOp, T>(inputs, output, elements, divisor);
  });
}

}  // namespace

void reduce_elements(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs,
                     std::span<std::byte* const> outputs, std::size_t elements,
                     const ReductionHints& /*hints*/) {
  std::byte* const output = outputs.front();
  switch (op) {
    case ReduceOp::kSum: reduce_any<ReduceOp::kSum>(dtype, inputs, output, elements); break;
    case ReduceOp::kMean: reduce_any<ReduceOp::kSum>(dtype, inputs, output, elements, inputs.size()); break;
    case ReduceOp::kMin: reduce_any<ReduceOp::kMin>(dtype, inputs, output, elements); break;
    case ReduceOp::kMax: reduce_any<ReduceOp::kMax>(dtype, inputs, output, elements); break;
    case ReduceOp::kProd: reduce_any<ReduceOp::kProd>(dtype, inputs, output, elements); break;
  }
  for (std::byte* other : outputs.subspan(1)) copy_bytes(other, output, elements * size_of(dtype));
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, bool /*stream*/) {
  std::memcpy(to, from, bytes);
}

void divide_elements(DType dtype, std::byte* data, std::size_t elements, std::size_t divisor) {
  const std::byte* const inputs[] = {data};
  reduce_any<ReduceOp::kSum>(dtype, inputs, data, elements, divisor);
}

}  // namespace cohort
