// The kinds of collective, and a table of what is known about each: its name, what members pass to it and get
// from it, and what an implementation may rely on. Code that asks about a kind asks the table; only code that
// executes collectives tells the kinds apart by name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace cohort {

/// Messages come last, so that the others are numbered without gaps.
enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSplit,  ///< an all-gather of what members contribute to a split
  kBarrier,
  kSend,
  kReceive,
};
/// `kReceive` stays the last of all.
inline constexpr std::size_t kCollectiveKinds = static_cast<std::size_t>(CollectiveKind::kReceive) + 1;

struct CollectiveTraits {
  /// Between which members data moves. A root sends its data to the others, or alone gets what they
  /// contribute.
  enum class Pattern : std::uint8_t { kSymmetric, kFromRoot, kToRoot, kMessage };

  /// What a member's input or output holds: one block, or a block of each member, by rank. Blocks have one
  /// size, unless the call has counts; so the elements of all blocks are a multiple of the number of members.
  enum class Extent : std::uint8_t { kNothing, kOneBlock, kAllBlocks };

  /// What memory input and output may share.
  enum class InPlace : std::uint8_t {
    kNever,
    kOwnBlock,  ///< one may be this member's own block of the other
    kWhole,     ///< they may be the same
    kAlways,    ///< they are one tensor, which a member reads or writes
  };

  CollectiveKind kind;
  std::string_view name;  ///< of the function
  bool reduces;           ///< combines the members' elements, and so has an operator
  Pattern pattern;
  Extent input;
  Extent output;
  InPlace in_place;

  [[nodiscard]] constexpr bool is_message() const noexcept { return pattern == Pattern::kMessage; }
  [[nodiscard]] constexpr bool has_root() const noexcept {
    return pattern == Pattern::kFromRoot || pattern == Pattern::kToRoot;
  }
};

/// By `CollectiveKind`.
inline constexpr auto kCollectives = [] {
  using enum CollectiveKind;
  using enum CollectiveTraits::Pattern;
  using enum CollectiveTraits::Extent;
  using enum CollectiveTraits::InPlace;
  constexpr bool kReduces = true;
  constexpr bool kMoves = false;
  return std::to_array<CollectiveTraits>({
      {kAllReduce, "all_reduce", kReduces, kSymmetric, kOneBlock, kOneBlock, kWhole},
      {kReduce, "reduce", kReduces, kToRoot, kOneBlock, kOneBlock, kWhole},
      {kBroadcast, "broadcast", kMoves, kFromRoot, kOneBlock, kOneBlock, kAlways},
      {kAllGather, "all_gather", kMoves, kSymmetric, kOneBlock, kAllBlocks, kOwnBlock},
      {kReduceScatter, "reduce_scatter", kReduces, kSymmetric, kAllBlocks, kOneBlock, kOwnBlock},
      {kAllToAll, "all_to_all", kMoves, kSymmetric, kAllBlocks, kAllBlocks, kNever},
      {kGather, "gather", kMoves, kToRoot, kOneBlock, kAllBlocks, kOwnBlock},
      {kScatter, "scatter", kMoves, kFromRoot, kAllBlocks, kOneBlock, kOwnBlock},
      {kSplit, "split", kMoves, kSymmetric, kOneBlock, kAllBlocks, kNever},
      {kBarrier, "barrier", kMoves, kSymmetric, kNothing, kNothing, kNever},
      {kSend, "send", kMoves, kMessage, kOneBlock, kOneBlock, kAlways},
      {kReceive, "receive", kMoves, kMessage, kOneBlock, kOneBlock, kAlways},
  });
}();

static_assert(kCollectives.size() == kCollectiveKinds, "every kind of collective needs a line in the table");
static_assert(std::ranges::adjacent_find(kCollectives, std::ranges::greater_equal(),
                                         &CollectiveTraits::kind) == kCollectives.end(),
              "the lines of the table stand in the order of the kinds");

[[nodiscard]] constexpr const CollectiveTraits& traits_of(CollectiveKind kind) noexcept {
  return kCollectives[static_cast<std::size_t>(kind)];
}

/// The name of the function, for example `all_reduce`.
[[nodiscard]] constexpr std::string_view to_string(CollectiveKind kind) noexcept {
  return traits_of(kind).name;
}
[[nodiscard]] constexpr bool reduces(CollectiveKind kind) noexcept { return traits_of(kind).reduces; }
[[nodiscard]] constexpr bool has_root(CollectiveKind kind) noexcept { return traits_of(kind).has_root(); }

/// No more than a comparison, since every call asks.
[[nodiscard]] constexpr bool is_message(CollectiveKind kind) noexcept {
  return kind >= CollectiveKind::kSend;
}
static_assert(std::ranges::all_of(kCollectives,
                                  [](const CollectiveTraits& traits) {
                                    return traits.is_message() == is_message(traits.kind);
                                  }),
              "messages come last, `kSend` first among them");

/// Whether calls of this kind have algorithms to choose from, so that COHORT_ALGORITHM may name the kind.
[[nodiscard]] constexpr bool has_algorithms(CollectiveKind kind) noexcept {
  return !is_message(kind) && traits_of(kind).input != CollectiveTraits::Extent::kNothing;
}

}  // namespace cohort
