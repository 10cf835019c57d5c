// A reduction in vectors: the operators on two of them, and one pass over the inputs, by whole blocks of
// vectors, then single vectors, then the rest of one. Included once per target.
#if defined(COHORT_COLLECTIVE_SIMD_REDUCTION_H) == defined(HWY_TARGET_TOGGLE)
#ifdef COHORT_COLLECTIVE_SIMD_REDUCTION_H
#undef COHORT_COLLECTIVE_SIMD_REDUCTION_H
#else
#define COHORT_COLLECTIVE_SIMD_REDUCTION_H
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cohort/collective/reduction.h>

#include "simd_elements.h"
#include "simd_memory.h"

HWY_BEFORE_NAMESPACE();
namespace cohort::HWY_NAMESPACE {

/// An operator combines two accumulators; a mean is then divided by the number of inputs.
struct Sum {
  static constexpr bool kDivides = false;
  template <class D, class V>
  static HWY_INLINE V combine(D /*tag*/, V a, V b) {
    return hn::Add(a, b);
  }
};

struct Mean : Sum {
  static constexpr bool kDivides = true;
};

template <bool kSmallest>
struct Extremum {
  static constexpr bool kDivides = false;
  template <class D, class V>
  static HWY_INLINE V combine([[maybe_unused]] D tag, V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      // Equal numbers have equal bits, except for the zeros: -0 is less than +0, so that the
      // order of operands never shows. A NaN wins; the sum carries it on.
      const V tie = kSmallest ? hn::Or(a, b) : hn::And(a, b);
      const V nearest = hn::IfThenElse(kSmallest ? hn::Lt(a, b) : hn::Gt(a, b), a, b);
      const V number = hn::IfThenElse(hn::Eq(a, b), tie, nearest);
      return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Add(a, b), number);
    } else {
      return kSmallest ? hn::Min(a, b) : hn::Max(a, b);
    }
  }
};

using Min = Extremum<true>;
using Max = Extremum<false>;

struct Product {
  static constexpr bool kDivides = false;
  template <class D, class V>
  static HWY_INLINE V combine([[maybe_unused]] D tag, V a, V b) {
    if constexpr (sizeof(hn::TFromD<D>) == 1) {
      return bytes(tag, a, b);
    } else {
      return hn::Mul(a, b);
    }
  }

 private:
  /// No instruction set multiplies bytes: those with odd index are multiplied in the upper
  /// halves of 16-bit lanes, those with even index in the lower ones.
  template <class D, class V>
  static HWY_INLINE V bytes([[maybe_unused]] D tag, V a, V b) {
    if constexpr (hn::MaxLanes(D()) == 1) {
      return hn::Set(tag, static_cast<std::uint8_t>(hn::GetLane(a) * hn::GetLane(b)));
    } else {
      const hn::Repartition<std::uint16_t, D> wide;
      const auto wide_a = hn::BitCast(wide, a);
      const auto wide_b = hn::BitCast(wide, b);
      const auto even = hn::Mul(wide_a, wide_b);
      const auto odd = hn::Mul(hn::And(wide_a, hn::Set(wide, 0xff00)), hn::ShiftRight<8>(wide_b));
      return hn::BitCast(tag, hn::Or(hn::And(even, hn::Set(wide, 0x00ff)), odd));
    }
  }
};

/// What is stored of a result: of a mean, its share of one of `divisor` inputs.
template <class Element, class Op>
HWY_INLINE Vector<typename ElementLanes<Element>::Stored> finish(
    typename ElementLanes<Element>::Accumulator result, std::size_t divisor) {
  using Lanes = ElementLanes<Element>;
  if constexpr (Op::kDivides) result = Lanes::divide(result, divisor);
  return Lanes::narrow(Lanes::one_nan(result));
}

/// Inputs and outputs are lists of pointers: arrays where their number is known to the
/// compiler, which then unrolls the loops over them; spans where it is not.
template <class Element, class Op, class Inputs, class Outputs>
class ReductionPass {
 public:
  HWY_INLINE ReductionPass(const Inputs& inputs, const Outputs& outputs, std::size_t elements,
                           std::size_t divisor)
      : inputs_(inputs), outputs_(outputs), elements_(elements), divisor_(divisor) {}

  HWY_INLINE void run(const ReductionHints& hints) const {
    if (!kOneLane && elements_ >= kHintedPass && is_any_set(hints)) return hinted(hints);
    std::size_t at = 0;
    if (elements_ >= kAlignedPass) at = head_of(0);
    for (; at + kBlock <= elements_; at += kBlock) vectors<kBlockVectors>(at);
    rest_from(at);
  }

 private:
  using Lanes = ElementLanes<Element>;
  using Stored = typename Lanes::Stored;
  using Accumulator = typename Lanes::Accumulator;

  static constexpr std::size_t kStep = kLanes<Stored>;
  /// Enough vectors at a time to look up the pointers of a list rarely.
  static constexpr std::size_t kBlockVectors = kOneLane ? 1 : 4;
  static constexpr std::size_t kBlock = kBlockVectors * kStep;
  static constexpr std::size_t kBlockBytes = kBlock * sizeof(Stored);
  /// Stores past the caches go to one cache line of each output in turn: with four at a time, two
  /// outputs were a tenth slower.
  static constexpr std::size_t kLineVectors =
      kVectorBytes<Stored> < kCacheLine ? kCacheLine / kVectorBytes<Stored> : 1;
  static constexpr std::size_t kLine = kLineVectors * kStep;
  static constexpr std::size_t kNone = ~std::size_t{0};
  /// Elements from which hints are followed, and from which it pays to align the stores.
  static constexpr std::size_t kHintedPass = 1024 / sizeof(Stored);
  static constexpr std::size_t kAlignedPass = 2048 / sizeof(Stored);
  /// What take_over asks for: far enough to hide the way from the other core's cache.
  static constexpr std::size_t kTakeOverBytes = 2048;

  static HWY_INLINE bool is_any_set(const ReductionHints& hints) {
    return hints.stream || hints.stream_others || hints.prefetch_outputs_bytes != 0 || hints.take_over >= 0;
  }

  HWY_INLINE void hinted(const ReductionHints& hints) const {
    const std::size_t streamed = first_streamed(hints);
    const bool streams = streamed < outputs_.size();
    prefetch_first(hints);
    std::size_t at = head_of(streams ? streamed : 0);
    for (; at + kBlock <= elements_; at += kBlock) {
      prefetch_ahead(hints, at * sizeof(Stored));
      if (streams) {
        for (std::size_t line = 0; line < kBlock; line += kLine) vectors<kLineVectors>(at + line, streamed);
      } else {
        vectors<kBlockVectors>(at);
      }
    }
    rest_from(at);
    if (streams) hwy::FlushStream();
  }

  /// Reduces what lies before the first vector boundary of an output; returns its elements.
  HWY_INLINE std::size_t head_of(std::size_t aligned_output) const {
    const std::size_t head = bytes_to_boundary<Stored>(outputs_[aligned_output]) / sizeof(Stored);
    if (head != 0) part(0, head);
    return head;
  }

  HWY_INLINE void rest_from(std::size_t at) const {
    for (; at + kStep <= elements_; at += kStep) vectors<1>(at);
    if (at < elements_) part(at, elements_ - at);
  }

  /// kCount vectors from `at`. All are loaded before the first is stored: an output may be an
  /// input. Outputs from the `streamed`-th on go past the caches.
  template <std::size_t kCount>
  HWY_INLINE void vectors(std::size_t at, std::size_t streamed = kNone) const {
    const Tag<Stored> tag;
    Accumulator results[kCount];
    const Stored* first = input(0, at);
    for (std::size_t v = 0; v < kCount; ++v) results[v] = Lanes::load(first + v * kStep);
    for (std::size_t i = 1; i < inputs_.size(); ++i) {
      const Stored* next = input(i, at);
      for (std::size_t v = 0; v < kCount; ++v)
        results[v] = Lanes::template combine<Op>(results[v], Lanes::load(next + v * kStep));
    }
    Vector<Stored> stored[kCount];
    for (std::size_t v = 0; v < kCount; ++v) stored[v] = finished(results[v]);
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      Stored* to = output(o, at);
      if (o >= streamed) {
        for (std::size_t v = 0; v < kCount; ++v) hn::Stream(stored[v], tag, to + v * kStep);
      } else {
        for (std::size_t v = 0; v < kCount; ++v) hn::StoreU(stored[v], tag, to + v * kStep);
      }
    }
  }

  /// Less than a vector.
  HWY_INLINE void part(std::size_t at, std::size_t count) const {
    Accumulator result = Lanes::widen(load_first(input(0, at), count));
    for (std::size_t i = 1; i < inputs_.size(); ++i)
      result = Lanes::template combine<Op>(result, Lanes::widen(load_first(input(i, at), count)));
    const Vector<Stored> stored = finished(result);
    for (std::size_t o = 0; o < outputs_.size(); ++o) store_first(stored, output(o, at), count);
  }

  HWY_INLINE Vector<Stored> finished(Accumulator result) const {
    return finish<Element, Op>(result, divisor_);
  }

  /// The first of the outputs that go past the caches. Such stores must be aligned: none go
  /// there unless one head aligns all of those outputs.
  HWY_INLINE std::size_t first_streamed(const ReductionHints& hints) const {
    if (!hints.stream && !hints.stream_others) return kNone;
    const std::size_t first = hints.stream ? 0 : 1;
    for (std::size_t o = first; o < outputs_.size(); ++o) {
      if (bytes_to_boundary<Stored>(outputs_[o]) != bytes_to_boundary<Stored>(outputs_[first])) return kNone;
    }
    return first;
  }

  /// What is written soon after the start; what is read, the first loads fetch themselves.
  HWY_INLINE void prefetch_first(const ReductionHints& hints) const {
    const std::size_t bytes = elements_ * sizeof(Stored);
    if (hints.take_over >= 0) {
      const std::byte* from = inputs_[static_cast<std::size_t>(hints.take_over)];
      for (std::size_t b = 0; b < std::min(bytes, kTakeOverBytes); b += kCacheLine)
        prefetch_to_write(from + b);
    }
    for (std::size_t o = 1; o < outputs_.size(); ++o) {
      for (std::size_t b = 0; b < std::min(bytes, hints.prefetch_outputs_bytes); b += kCacheLine)
        prefetch_to_write(outputs_[o] + b);
    }
  }

  /// The cache lines that lie the hinted distances ahead of the block at byte `begin`.
  HWY_INLINE void prefetch_ahead(const ReductionHints& hints, std::size_t begin) const {
    if (hints.take_over >= 0) {
      const std::byte* next = inputs_[static_cast<std::size_t>(hints.take_over)];
      take_over_lines(next, begin + kTakeOverBytes);
    }
    if (hints.prefetch_outputs_bytes != 0) {
      for (std::size_t o = 1; o < outputs_.size(); ++o)
        take_over_lines(outputs_[o], begin + hints.prefetch_outputs_bytes);
    }
  }

  /// The cache lines of a block. Never beyond the end of the buffer: a cache line there belongs to other
  /// data.
  HWY_INLINE void take_over_lines(const std::byte* buffer, std::size_t begin) const {
    const std::size_t end = elements_ * sizeof(Stored);
    if (begin + kBlockBytes <= end) {
      for (std::size_t b = 0; b < kBlockBytes; b += kCacheLine) prefetch_to_write(buffer + begin + b);
    } else {
      for (std::size_t b = begin; b < end; b += kCacheLine) prefetch_to_write(buffer + b);
    }
  }

  HWY_INLINE const Stored* input(std::size_t i, std::size_t at) const {
    return reinterpret_cast<const Stored*>(inputs_[i]) + at;
  }
  HWY_INLINE Stored* output(std::size_t o, std::size_t at) const {
    return reinterpret_cast<Stored*>(outputs_[o]) + at;
  }

  Inputs inputs_;
  Outputs outputs_;
  std::size_t elements_;
  std::size_t divisor_;
};

/// Of two, less than a vector.
template <class Element, class Op>
HWY_INLINE void reduce_part(const std::byte* first, const std::byte* second, std::byte* output,
                            std::size_t elements) {
  using Lanes = ElementLanes<Element>;
  using Stored = typename Lanes::Stored;
  if (elements == 0) return;
  const auto load = [elements](const std::byte* from) HWY_ATTR {
    return Lanes::widen(load_first(reinterpret_cast<const Stored*>(from), elements));
  };
  store_first(finish<Element, Op>(Lanes::template combine<Op>(load(first), load(second)), 2),
              reinterpret_cast<Stored*>(output), elements);
}

// Not inline: the registers that they save would be saved in the shortest pass, too.

template <class Element, class Op>
HWY_NOINLINE void reduce_two(const std::byte* first, const std::byte* second, std::byte* output,
                             std::size_t elements, const ReductionHints& hints) {
  using Pass = ReductionPass<Element, Op, std::array<const std::byte*, 2>, std::array<std::byte*, 1>>;
  Pass({first, second}, {output}, elements, 2).run(hints);
}

template <class Element, class Op>
HWY_NOINLINE void reduce_two(const std::byte* first, const std::byte* second, std::byte* output,
                             std::byte* other_output, std::size_t elements, const ReductionHints& hints) {
  using Pass = ReductionPass<Element, Op, std::array<const std::byte*, 2>, std::array<std::byte*, 2>>;
  Pass({first, second}, {output, other_output}, elements, 2).run(hints);
}

template <class Element, class Op>
HWY_NOINLINE void reduce_any(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                             std::size_t elements, const ReductionHints& hints) {
  using Pass = ReductionPass<Element, Op, std::span<const std::byte* const>, std::span<std::byte* const>>;
  Pass(inputs, outputs, elements, inputs.size()).run(hints);
}

/// Sums of two, to one output or both, are what pairs of members do most often; for a few
/// elements it is the lookup of pointers that costs. So they have code of their own.
template <class Element, class Op>
void reduce(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
            std::size_t elements, const ReductionHints& hints) {
  if constexpr (std::is_base_of_v<Sum, Op>) {
    using Stored = typename ElementLanes<Element>::Stored;
    if (inputs.size() == 2 && outputs.size() == 1) {
      if (elements < kLanes<Stored>)
        return reduce_part<Element, Op>(inputs[0], inputs[1], outputs[0], elements);
      return reduce_two<Element, Op>(inputs[0], inputs[1], outputs[0], elements, hints);
    }
    if (inputs.size() == 2 && outputs.size() == 2)
      return reduce_two<Element, Op>(inputs[0], inputs[1], outputs[0], outputs[1], elements, hints);
  }
  reduce_any<Element, Op>(inputs, outputs, elements, hints);
}

/// The mean of one input, as if it were the sum of `divisor`.
template <class Element>
void divide(std::byte* data, std::size_t elements, std::size_t divisor) {
  using OneInput = std::array<const std::byte*, 1>;
  using OneOutput = std::array<std::byte*, 1>;
  ReductionPass<Element, Mean, OneInput, OneOutput>({data}, {data}, elements, divisor).run({});
}

}  // namespace cohort::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
