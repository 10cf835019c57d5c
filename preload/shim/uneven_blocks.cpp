#include "uneven_blocks.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <cohort/base/error.h>
#include <cohort/collective/collective_call.h>

#include "../engine.h"

namespace cohort::preload {
namespace {

/// In front of each block.
struct Header {
  std::uint64_t bytes;    ///< of this block
  std::uint64_t largest;  ///< of the sender's blocks for others
  std::uint64_t total;    ///< of the sender's blocks for others
  std::uint64_t is_row;   ///< all blocks that the sender sends and receives are as large, and lie in two rows
};

constexpr std::size_t kLeastRoom = UnevenBlocks::kLeastRoom;
/// All rooms of one member. Up to here the two copies more than the MPI makes cost less than its messages.
constexpr std::size_t kMostRooms = std::size_t{64} << 10;
/// The same where most of them are empty.
constexpr std::size_t kMostEmptyRooms = std::size_t{4} << 10;
/// So many calls at most go to the MPI unseen, after others that were the MPI's.
constexpr int kMostLeft = 15;

std::size_t rounded_up(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

/// A quarter more than the block needs at most, so that one of nearly the same size fits in, too.
std::size_t room_for(std::size_t block_bytes) {
  const std::size_t bytes = sizeof(Header) + block_bytes;
  return rounded_up(bytes, std::max(std::bit_floor(bytes) / 4, kLeastRoom));
}

void put(const Elements& block, std::byte* to) {
  if (block.bytes() == 0) return;
  if (block.in_one_piece())
    std::memcpy(to, block.buffer, block.bytes());
  else
    block.pack({to, block.bytes()});
}

void take(const Elements& block, const std::byte* from) {
  if (block.bytes() == 0) return;
  if (block.in_one_piece())
    std::memcpy(block.buffer, from, block.bytes());
  else
    block.unpack({from, block.bytes()});
}

/// This member's block for itself.
void move_own(const Elements& to, const Elements& from) {
  if (to.buffer == from.buffer || to.bytes() == 0) return;
  if (to.in_one_piece()) return take(from, to.buffer);
  std::vector<std::byte> packed(to.bytes());
  put(to, packed.data());
  take(from, packed.data());
}

/// Whether these blocks have this size and lie one after the other.
bool is_row(std::span<const Elements> blocks, std::size_t bytes) {
  const std::byte* next = blocks.front().buffer;
  for (const Elements& block : blocks) {
    if (!block.in_one_piece() || block.bytes() != bytes || block.buffer != next) return false;
    next += bytes;
  }
  return true;
}

/// What the headers of a call say.
class Sizes {
 public:
  Sizes(const Communicator& communicator, const UnevenBlocks& blocks)
      : communicator_(communicator), members_(blocks.from.size()), wrong_(members_) {
    for (std::size_t member = 0; member < members_; ++member) {
      Header header;
      std::memcpy(&header, blocks.incoming.data() + member * blocks.room_bytes, sizeof header);
      largest_ = std::max<std::size_t>(largest_, header.largest);
      total_ += header.total;
      are_rows_ = are_rows_ && header.is_row != 0;
      if (header.bytes == blocks.from[member].bytes() || wrong_ != members_) continue;
      wrong_ = member;
      wrong_bytes_ = header.bytes;
      expected_ = blocks.from[member].bytes();
    }
  }

  [[nodiscard]] std::size_t largest() const noexcept { return largest_; }
  /// Whether all blocks are of one size, and lie in rows on all members.
  [[nodiscard]] bool are_rows() const noexcept { return are_rows_ && total_ == largest_ * messages(); }
  /// Whether rooms for the largest block are worth it.
  [[nodiscard]] bool suit_rooms() const noexcept {
    const std::size_t rooms = room_for(largest_) * members_;
    return rooms <= kMostEmptyRooms || (rooms <= kMostRooms && largest_ * messages() <= 2 * total_);
  }

  /// Only this member knows that, so it says so once it has made all exchanges.
  void require_as_expected() const {
    if (wrong_ == members_) return;
    throw InvalidArgument("{} sends {} bytes to {}, which expects {}", who(wrong_), wrong_bytes_, who(rank()),
                          expected_);
  }

  /// Collective. In the MPI's call, all would wait for a member that has given up, or for ever.
  void require_as_expected_by_all(Communicator& communicator) const {
    std::uint64_t wrong = wrong_ == members_ ? 0 : 1 + rank() * members_ + wrong_;
    CollectiveCall call = call_of(CollectiveKind::kAllReduce, &wrong, &wrong, 1, DType::kUInt64);
    call.op = ReduceOp::kMax;
    carry_out(communicator, call);
    require_as_expected();
    if (wrong == 0) return;
    throw InvalidArgument("{} sends a block to {} of another size than that expects",
                          who((wrong - 1) % members_), who((wrong - 1) / members_));
  }

 private:
  [[nodiscard]] std::size_t messages() const noexcept { return members_ * (members_ - 1); }
  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(communicator_.rank()); }
  [[nodiscard]] std::string who(std::size_t member) const {
    return describe(static_cast<int>(member), communicator_.members()[member]);
  }

  const Communicator& communicator_;
  std::size_t members_;
  std::size_t largest_ = 0;
  std::size_t total_ = 0;  ///< of all members
  bool are_rows_ = true;
  std::size_t wrong_;  ///< the first one whose block has another size than this member expects
  std::size_t wrong_bytes_ = 0;
  std::size_t expected_ = 0;
};

/// Sizes, and those blocks that fit beside them.
Sizes exchange_rooms(Communicator& communicator, UnevenBlocks& blocks) {
  const std::size_t members = blocks.to.size();
  blocks.outgoing.resize(members * blocks.room_bytes);
  blocks.incoming.resize(members * blocks.room_bytes);
  const auto rank = static_cast<std::size_t>(communicator.rank());
  Header header{};
  for (std::size_t member = 0; member < members; ++member) {
    if (member == rank) continue;
    header.largest = std::max<std::uint64_t>(header.largest, blocks.to[member].bytes());
    header.total += blocks.to[member].bytes();
  }
  header.is_row =
      !blocks.in_place && is_row(blocks.to, header.largest) && is_row(blocks.from, header.largest);
  for (std::size_t member = 0; member < members; ++member) {
    const Elements& block = blocks.to[member];
    std::byte* const room = blocks.outgoing.data() + member * blocks.room_bytes;
    header.bytes = block.bytes();
    std::memcpy(room, &header, sizeof header);
    if (member != rank && sizeof header + block.bytes() <= blocks.room_bytes)
      put(block, room + sizeof header);
  }
  // In words, so that it is not taken for the call of a member that makes an MPI_Alltoall.
  carry_out(communicator, call_of(CollectiveKind::kAllToAll, blocks.outgoing.data(), blocks.incoming.data(),
                                  blocks.room_bytes / sizeof(std::uint64_t), DType::kUInt64));
  return {communicator, blocks};
}

}  // namespace

bool exchange(Communicator& communicator, UnevenBlocks& blocks) {
  if (blocks.left_to_mpi > 0) {
    --blocks.left_to_mpi;
    return false;
  }
  const std::size_t room = blocks.room_bytes;
  const Sizes sizes = exchange_rooms(communicator, blocks);
  const bool is_done = sizeof(Header) + sizes.largest() <= room;
  // For this call or the next one, which is often like it. All members have the same sizes.
  blocks.room_bytes =
      std::max(sizes.suit_rooms() ? room_for(sizes.largest()) : kLeastRoom, rounded_up(room / 2, kLeastRoom));
  if (!is_done && !sizes.suit_rooms()) {
    if (sizes.are_rows()) {
      carry_out(communicator, call_of(CollectiveKind::kAllToAll, blocks.to.front().buffer,
                                      blocks.from.front().buffer, sizes.largest(), DType::kUInt8));
      return true;
    }
    sizes.require_as_expected_by_all(communicator);
    blocks.left_in_row = std::min(2 * blocks.left_in_row + 1, kMostLeft);
    blocks.left_to_mpi = blocks.left_in_row;
    return false;
  }
  blocks.left_in_row = 0;
  if (!is_done) exchange_rooms(communicator, blocks);
  sizes.require_as_expected();
  const std::size_t stride = is_done ? room : blocks.room_bytes;
  const auto rank = static_cast<std::size_t>(communicator.rank());
  for (std::size_t member = 0; member < blocks.from.size(); ++member) {
    if (member != rank) take(blocks.from[member], blocks.incoming.data() + member * stride + sizeof(Header));
  }
  move_own(blocks.to[rank], blocks.from[rank]);
  return true;
}

}  // namespace cohort::preload
