// One pass over the inputs of a reduction: whole blocks of vectors, then single vectors, then
// the rest of one. Included once per target.
#if defined(COHORT_COLLECTIVE_REDUCTION_PASS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef COHORT_COLLECTIVE_REDUCTION_PASS_INL_H
#undef COHORT_COLLECTIVE_REDUCTION_PASS_INL_H
#else
#define COHORT_COLLECTIVE_REDUCTION_PASS_INL_H
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cohort/collective/reduction.h>

#include "element_lanes-inl.h"
#include "operators-inl.h"
#include "vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cohort::HWY_NAMESPACE {

/// Inputs and outputs are lists of pointers: arrays where their number is known to the
/// compiler, which then unrolls the loops over them; spans where it is not.
template <class Element, class Op, class Inputs, class Outputs>
class ReductionPass {
 public:
  HWY_INLINE ReductionPass(const Inputs& inputs, const Outputs& outputs, std::size_t elements,
                           std::size_t divisor)
      : inputs_(inputs), outputs_(outputs), elements_(elements), divisor_(divisor) {}

  HWY_INLINE void run(const ReductionHints& hints) const {
    if (elements_ < kLongPass) return vectors_from(0);
    if (is_any_set(hints)) return blocks<true>(hints);
    return blocks<false>(hints);
  }

 private:
  using Lanes = ElementLanes<Element>;
  using Stored = typename Lanes::Stored;
  using Accumulator = typename Lanes::Accumulator;

  static constexpr std::size_t kStep = kLanes<Stored>;
  /// Enough vectors in flight to hide the latency of the arithmetic, and to look up the
  /// pointers of a list rarely.
  static constexpr std::size_t kVectors = kOneLane ? 1 : 4;
  static constexpr std::size_t kBlock = kVectors * kStep;
  static constexpr std::size_t kBlockBytes = kBlock * sizeof(Stored);
  /// From here on it pays to start at a vector boundary of the outputs.
  static constexpr std::size_t kLongPass = 4 * kBlock;
  /// What take_over asks for: far enough to hide the way from the other core's cache.
  static constexpr std::size_t kTakeOverBytes = 2048;

  static HWY_INLINE bool is_any_set(const ReductionHints& hints) {
    return hints.stream || hints.stream_others || hints.prefetch_bytes != 0 ||
           hints.prefetch_outputs_bytes != 0 || hints.take_over >= 0;
  }

  template <bool kHinted>
  HWY_INLINE void blocks(const ReductionHints& hints) const {
    // The first of the outputs that go past the caches: 0, 1 or none.
    const std::size_t streamed = hints.stream ? 0 : hints.stream_others ? 1 : outputs_.size();
    std::size_t first_streamed = outputs_.size();
    std::size_t at = 0;
    if constexpr (kHinted) {
      if (can_stream_from(streamed)) first_streamed = streamed;
      prefetch_first(hints);
    }
    const std::size_t aligned_output = first_streamed < outputs_.size() ? first_streamed : 0;
    if (const std::size_t head = bytes_to_boundary<Stored>(outputs_[aligned_output]) / sizeof(Stored)) {
      part(0, head);
      at = head;
    }
    for (; at + kBlock <= elements_; at += kBlock) {
      if constexpr (kHinted) prefetch_ahead(hints, at * sizeof(Stored));
      vectors<kVectors, kHinted>(at, first_streamed);
    }
    vectors_from(at);
    if (kHinted && first_streamed < outputs_.size()) hwy::FlushStream();
  }

  HWY_INLINE void vectors_from(std::size_t at) const {
    for (; at + kStep <= elements_; at += kStep) vectors<1, false>(at, 0);
    if (at < elements_) part(at, elements_ - at);
  }

  /// kCount vectors from `at`. All are loaded before the first is stored: an output may be an input.
  template <std::size_t kCount, bool kStreams>
  HWY_INLINE void vectors(std::size_t at, std::size_t first_streamed) const {
    const Tag<Stored> tag;
    Accumulator results[kCount];
    for (std::size_t v = 0; v < kCount; ++v)
      results[v] = Lanes::widen(hn::LoadU(tag, input(0, at) + v * kStep));
    for (std::size_t i = 1; i < inputs_.size(); ++i) {
      const Stored* from = input(i, at);
      for (std::size_t v = 0; v < kCount; ++v) {
        const Accumulator next = Lanes::widen(hn::LoadU(tag, from + v * kStep));
        results[v] = Lanes::template combine<Op>(results[v], next);
      }
    }
    Vector<Stored> stored[kCount];
    for (std::size_t v = 0; v < kCount; ++v) stored[v] = finished(results[v]);
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      Stored* to = output(o, at);
      if (kStreams && o >= first_streamed) {
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
    if constexpr (Op::kDivides) result = Lanes::divide(result, divisor_);
    return Lanes::narrow(result);
  }

  /// Stores past the caches must be aligned, so one head has to align all of their outputs.
  HWY_INLINE bool can_stream_from(std::size_t first) const {
    for (std::size_t o = first; o < outputs_.size(); ++o) {
      if (bytes_to_boundary<Stored>(outputs_[o]) != bytes_to_boundary<Stored>(outputs_[first])) return false;
    }
    return first < outputs_.size();
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

  /// The lines that lie the hinted distances ahead of the block at byte `begin`. Never beyond
  /// the end: a line there is somebody else's.
  HWY_INLINE void prefetch_ahead(const ReductionHints& hints, std::size_t begin) const {
    if (hints.prefetch_bytes != 0) {
      for (std::size_t i = 0; i < inputs_.size(); ++i)
        for_each_line(begin + hints.prefetch_bytes, inputs_[i], prefetch_to_read);
    }
    if (hints.take_over >= 0) {
      const std::byte* from = inputs_[static_cast<std::size_t>(hints.take_over)];
      for_each_line(begin + kTakeOverBytes, from, prefetch_to_write);
    }
    if (hints.prefetch_outputs_bytes != 0) {
      for (std::size_t o = 1; o < outputs_.size(); ++o)
        for_each_line(begin + hints.prefetch_outputs_bytes, outputs_[o], prefetch_to_write);
    }
  }

  template <class Prefetch>
  HWY_INLINE void for_each_line(std::size_t begin, const std::byte* buffer, Prefetch prefetch) const {
    const std::size_t end = std::min(begin + kBlockBytes, elements_ * sizeof(Stored));
    for (std::size_t b = begin; b < end; b += kCacheLine) prefetch(buffer + b);
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

/// The numbers of inputs and outputs that pairs of members need are worth code of their own:
/// for a few elements it is the lookup of pointers that costs.
template <class Element, class Op>
void reduce(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
            std::size_t elements, const ReductionHints& hints) {
  using AnyInputs = std::span<const std::byte* const>;
  using AnyOutputs = std::span<std::byte* const>;
  using TwoInputs = std::array<const std::byte*, 2>;
  using OneOutput = std::array<std::byte*, 1>;
  using TwoOutputs = std::array<std::byte*, 2>;
  if (inputs.size() == 2 && outputs.size() == 1) {
    ReductionPass<Element, Op, TwoInputs, OneOutput>({inputs[0], inputs[1]}, {outputs[0]}, elements, 2)
        .run(hints);
  } else if (inputs.size() == 2 && outputs.size() == 2) {
    ReductionPass<Element, Op, TwoInputs, TwoOutputs>({inputs[0], inputs[1]}, {outputs[0], outputs[1]},
                                                      elements, 2)
        .run(hints);
  } else {
    ReductionPass<Element, Op, AnyInputs, AnyOutputs>(inputs, outputs, elements, inputs.size()).run(hints);
  }
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
