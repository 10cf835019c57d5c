// How the fields of a call fit into two words of an entry.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include <cohort/collective/collective_call.h>

#include "member_record.h"

namespace cohort {

/// A run of bits of a word.
template <unsigned kShift, unsigned kBits>
struct BitField {
  static constexpr std::uint64_t kMost = (std::uint64_t{1} << kBits) - 1;
  [[nodiscard]] static constexpr std::uint64_t pack(std::uint64_t value) noexcept {
    return (value & kMost) << kShift;
  }
  [[nodiscard]] static constexpr std::uint64_t unpack(std::uint64_t word) noexcept {
    return word >> kShift & kMost;
  }
};

using NumberField = BitField<0, 48>;  ///< of a collective; the tag of a message
using KindField = BitField<48, 5>;
using DTypeField = BitField<53, 5>;
using OpField = BitField<58, 4>;
using PriorityField = BitField<62, 1>;
using AsyncField = BitField<63, 1>;  ///< whoever made the call went on, and waits for its end later
static_assert(kCollectiveKinds <= KindField::kMost + 1 && kAllDTypes.size() <= DTypeField::kMost + 1);
static_assert(kPriorities <= PriorityField::kMost + 1);

using ElementsField = BitField<0, 40>;  ///< or its largest value, if there are more
using RootField = BitField<40, 24>;     ///< the root, or the other member of a message

/// All but the number of a collective, or the tag of a message.
[[nodiscard]] inline PackedCall pack_unnumbered(const CollectiveCall& call) noexcept {
  return {.what = KindField::pack(static_cast<std::uint64_t>(call.kind)) |
                  DTypeField::pack(static_cast<std::uint64_t>(call.dtype)) |
                  OpField::pack(static_cast<std::uint64_t>(call.op)) |
                  PriorityField::pack(static_cast<std::uint64_t>(call.priority)),
          .size = ElementsField::pack(std::min<std::uint64_t>(call.elements, ElementsField::kMost)) |
                  RootField::pack(static_cast<std::uint64_t>(call.root))};
}

/// `number` is a collective's; a message has its tag.
[[nodiscard]] inline PackedCall pack(const CollectiveCall& call, std::uint64_t number) noexcept {
  PackedCall packed = pack_unnumbered(call);
  packed.what |= NumberField::pack(is_message(call.kind) ? static_cast<std::uint32_t>(call.tag) : number);
  return packed;
}

}  // namespace cohort
