// The protocols by which data that does not fit a slot moves on a node, and the sizes at which one replaces
// another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "control_block.h"

namespace cohort::node {

enum class Protocol : std::uint8_t {
  kPieces,      ///< through cells, piece by piece
  kDirect,      ///< members read and write each other's tensors, which all can address
  kSingleCopy,  ///< the kernel copies from one member's memory to another's
};
inline constexpr std::array kProtocols{Protocol::kPieces, Protocol::kDirect, Protocol::kSingleCopy};

/// As benchmarks and COHORT_ALGORITHM name it, for example `single_copy`.
[[nodiscard]] constexpr std::string_view to_string(Protocol protocol) noexcept {
  switch (protocol) {
    case Protocol::kPieces: return "pieces";
    case Protocol::kDirect: return "direct";
    case Protocol::kSingleCopy: return "single_copy";
  }
  return "unknown";
}

// The sizes are in bytes that one member contributes. Measured on two cores with rewritten inputs;
// docs/collectives.md says what each protocol costs.

/// Buffers of the heap are used where they are from some size on. Sums in place cross the cores once in
/// each direction, and so does a reduce-scatter: they gain at once. What moves whole buffers gains later.
inline constexpr std::size_t kSmallestDirectReduction = kSlotBytes + 1;
inline constexpr std::size_t kSmallestDirectOutOfPlace = std::size_t{128} << 10;
inline constexpr std::size_t kSmallestDirectMove = std::size_t{64} << 10;
inline constexpr std::size_t kSmallestDirectBroadcast = std::size_t{128} << 10;

/// Many members read no more than this of each other's slots and cells; beyond, they reduce in shares and
/// meet once more, which takes about as long as to read so much.
inline constexpr std::size_t kMostReadAtOnce = std::size_t{16} << 10;
/// Without a tree, the bytes of a step that a member must be spared for the two meetings of shares to cost
/// less. Six members and more get there; measured on two cores, which they shared.
inline constexpr std::size_t kLeastSavedByShares = std::size_t{144} << 10;

/// Where so many members share cores, one reduces a small call for all of them if it reads so many bytes:
/// what each would read takes longer then than to wait for that one. Measured with 8 to 64 on two cores.
inline constexpr std::size_t kFewestForOne = 12;
inline constexpr std::size_t kLeastForOne = std::size_t{16} << 10;

/// Members that share cores pass sums on to each other from so many bytes on, and from so many for each of
/// them: with fewer pieces most of them wait.
inline constexpr std::size_t kSmallestChain = std::size_t{256} << 10;
inline constexpr std::size_t kLeastChainedPerMember = std::size_t{4} << 10;

/// From here on an all-reduce among several sockets goes along them, in blocks so large that one is reduced
/// on a socket while the one before it is on the next.
inline constexpr std::size_t kSmallestSocketChain = std::size_t{256} << 10;
/// A share along the sockets is done in so many blocks, within limits: while one socket adds a block, the
/// next one adds the block before.
inline constexpr std::size_t kChainBlocks = 8;
inline constexpr std::size_t kSmallestChainBlock = std::size_t{2} << 10;
inline constexpr std::size_t kLargestChainBlock = std::size_t{64} << 10;

/// Two members share the work of a broadcast from here on; below, the root writes alone. What the kernel
/// copies they always share.
inline constexpr std::size_t kSmallestSharedBroadcast = std::size_t{2} << 20;

/// Private buffers are copied by the kernel from here on: below, the system call costs more than a
/// second copy through the caches.
inline constexpr std::size_t kSmallestSingleCopy = std::size_t{256} << 10;
/// From one root to all, from so many bytes for each member on.
inline constexpr std::size_t kSingleCopyFromRootPerMember = std::size_t{32} << 10;
/// An all-gather among up to so many members from results of so many times that on.
inline constexpr std::size_t kMostInLateSingleCopy = 8;
inline constexpr std::size_t kSingleCopyGatherFactor = 32;

/// Bytes per system call: what was pulled in is reduced while it is still in the second-level cache.
inline constexpr std::size_t kSingleCopyBlock = std::size_t{256} << 10;

/// Long calls yield after so many bytes, so that more urgent ones overtake them: 0.1 ms of work.
inline constexpr std::size_t kBytesBetweenYields = std::size_t{1} << 20;

/// Calls out of place of up to so many bytes prefetch the others' outputs for writing, since these lie in the
/// others' caches.
inline constexpr std::size_t kLargestPrefetch = std::size_t{1} << 20;
/// How many bytes ahead of the stores they do so.
inline constexpr std::size_t kPrefetchAhead = 1024;

/// Results of calls out of place go past the caches where they would not stay there anyway: first the
/// others' copies, then all.
inline constexpr std::size_t kSmallestStreamOthers = std::size_t{12} << 20;
inline constexpr std::size_t kSmallestStream = std::size_t{48} << 20;
/// So do blocks that members put into each other's outputs, once the outputs of all have so many bytes.
inline constexpr std::size_t kSmallestStreamedPush = std::size_t{32} << 20;

}  // namespace cohort::node
