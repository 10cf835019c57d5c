#include "uneven_blocks.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include <cohort/base/error.h>
#include <cohort/collective/collective_call.h>

#include "../engine.h"

namespace cohort::preload {
namespace {

/// In front of each block.
struct Header {
  std::uint64_t bytes;    ///< of this block
  std::uint64_t largest;  ///< of the sender's blocks
  std::uint64_t total;    ///< of the sender's blocks
};

constexpr std::size_t kLeastRoom = 64;
/// Larger blocks go in a second exchange, once their sizes are known.
constexpr std::size_t kMostRoom = std::size_t{8} << 10;
/// Of one member's rooms for blocks that differ: what is copied twice more than by the MPI.
constexpr std::size_t kMostCopied = std::size_t{1} << 20;

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

Header header_in(const std::byte* room) {
  Header header;
  std::memcpy(&header, room, sizeof header);
  return header;
}

/// Where blocks of this size begin that lie one after the other; null if they do not.
std::byte* row_of(std::span<const Elements> blocks, std::size_t bytes) {
  std::byte* const begin = blocks.front().buffer;
  for (std::size_t member = 0; member < blocks.size(); ++member) {
    const Elements& block = blocks[member];
    if (!block.in_one_piece() || block.bytes() != bytes || block.buffer != begin + member * bytes)
      return nullptr;
  }
  return begin;
}

void all_to_all(Communicator& communicator, const std::byte* input, std::byte* output, std::size_t bytes) {
  CollectiveCall call;
  call.kind = CollectiveKind::kAllToAll;
  call.dtype = DType::kUInt8;
  call.elements = bytes;
  call.input = input;
  call.output = output;
  carry_out(communicator, call);
}

/// Of the call that has just been made.
class Sizes {
 public:
  Sizes(const Communicator& communicator, const UnevenBlocks& blocks)
      : communicator_(communicator), members_(blocks.from.size()) {
    for (std::size_t member = 0; member < members_; ++member) {
      const Header header = header_in(blocks.incoming.data() + member * blocks.room_bytes);
      largest_ = std::max<std::size_t>(largest_, header.largest);
      total_ += header.total;
      if (header.bytes == blocks.from[member].bytes() || wrong_ != members_) continue;
      wrong_ = member;
      wrong_bytes_ = header.bytes;
      expected_ = blocks.from[member].bytes();
    }
  }

  [[nodiscard]] std::size_t largest() const noexcept { return largest_; }
  [[nodiscard]] bool are_equal() const noexcept { return total_ == largest_ * members_ * members_; }
  /// Whether rooms as large as the largest block are worth it.
  [[nodiscard]] bool are_similar() const noexcept {
    return largest_ * members_ <= kMostCopied && largest_ * members_ * members_ <= 2 * total_;
  }

  /// Only this member knows that, so it says so once it has made all exchanges.
  void require_as_expected() const {
    if (wrong_ == members_) return;
    const auto who = [this](std::size_t member) {
      return describe(static_cast<int>(member), communicator_.members()[member]);
    };
    throw InvalidArgument("{} sends {} bytes to {}, which expects {}", who(wrong_), wrong_bytes_,
                          who(static_cast<std::size_t>(communicator_.rank())), expected_);
  }

 private:
  const Communicator& communicator_;
  std::size_t members_;
  std::size_t largest_ = 0;
  std::size_t total_ = 0;  ///< of all members
  std::size_t wrong_ = members_;
  std::size_t wrong_bytes_ = 0;
  std::size_t expected_ = 0;
};

/// The first exchange: sizes, and blocks that have room beside them.
Sizes exchange_small(Communicator& communicator, UnevenBlocks& blocks) {
  const std::size_t members = blocks.to.size();
  blocks.outgoing.resize(members * blocks.room_bytes);
  blocks.incoming.resize(members * blocks.room_bytes);
  Header header{};
  for (const Elements& block : blocks.to) {
    header.largest = std::max<std::uint64_t>(header.largest, block.bytes());
    header.total += block.bytes();
  }
  std::byte* room = blocks.outgoing.data();
  for (const Elements& block : blocks.to) {
    header.bytes = block.bytes();
    std::memcpy(room, &header, sizeof header);
    if (sizeof header + block.bytes() <= blocks.room_bytes) put(block, room + sizeof header);
    room += blocks.room_bytes;
  }
  all_to_all(communicator, blocks.outgoing.data(), blocks.incoming.data(), blocks.room_bytes);
  return {communicator, blocks};
}

/// In rooms as large as the largest block, or where the blocks are if they are equal.
void exchange_large(Communicator& communicator, UnevenBlocks& blocks, const Sizes& sizes) {
  const std::size_t members = blocks.to.size();
  const std::size_t bytes = sizes.largest();
  std::byte* input = blocks.in_place || !sizes.are_equal() ? nullptr : row_of(blocks.to, bytes);
  std::byte* output = sizes.are_equal() ? row_of(blocks.from, bytes) : nullptr;
  const bool takes = output == nullptr;
  if (input == nullptr) {
    blocks.outgoing.resize(std::max(blocks.outgoing.size(), members * bytes));
    input = blocks.outgoing.data();
    for (std::size_t member = 0; member < members; ++member) put(blocks.to[member], input + member * bytes);
  }
  if (takes) {
    blocks.incoming.resize(std::max(blocks.incoming.size(), members * bytes));
    output = blocks.incoming.data();
  }
  all_to_all(communicator, input, output, bytes);
  sizes.require_as_expected();
  for (std::size_t member = 0; takes && member < members; ++member)
    take(blocks.from[member], output + member * bytes);
}

/// What is larger is not kept: it is rare, and memory that the program may need.
void shrink(std::vector<std::byte>& rooms) {
  if (rooms.size() <= kMostCopied) return;
  rooms.clear();
  rooms.shrink_to_fit();
}

}  // namespace

bool exchange(Communicator& communicator, UnevenBlocks& blocks) {
  const std::size_t room = blocks.room_bytes;
  const Sizes sizes = exchange_small(communicator, blocks);
  // For the next call, which is often like this one. All members have the same sizes.
  const std::size_t wanted = std::max(std::bit_ceil(sizeof(Header) + sizes.largest()), kLeastRoom);
  blocks.room_bytes = std::max(wanted <= kMostRoom ? wanted : kLeastRoom, room / 2);
  if (sizeof(Header) + sizes.largest() <= room) {
    sizes.require_as_expected();
    for (std::size_t member = 0; member < blocks.from.size(); ++member)
      take(blocks.from[member], blocks.incoming.data() + member * room + sizeof(Header));
    return true;
  }
  if (!sizes.are_equal() && !sizes.are_similar()) {
    sizes.require_as_expected();  // or the MPI may wait for ever
    return false;
  }
  exchange_large(communicator, blocks, sizes);
  shrink(blocks.outgoing);
  shrink(blocks.incoming);
  return true;
}

}  // namespace cohort::preload
