// A member's control block as the other members of its node see it: a block of its process's heap with the
// flags that it raises and the cells that it fills. Only its owner writes here, except where a comment below
// says otherwise.
//
// Every collective begins with one word on one line, whatever its size: members that
// disagree about the size would otherwise wait for each other at different places, and
// never find out. Payload of a few bytes lies beside the word and costs no cache line more.
//
// At the end: which line, slot and cell a member uses when. The words are explained in docs/collectives.md.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <cohort/collective/collective_call.h>

#include "collective/record/call_record.h"
#include "waiting.h"

namespace cohort::node {

/// Two cache lines: the hardware fetches them in pairs, so flags of different writers keep apart.
inline constexpr std::size_t kFlagSpacing = 128;

inline constexpr std::size_t kPayloadBytes = 56;
/// Lines of a member: those that come after calls in which all wait for all, and those after eager calls, of
/// which so many, less one, may be under way. With cores far apart a line takes 0.25 us to where it is read,
/// and as long until it is seen that it was, so there are many; a call in which all wait prefers few, which
/// stay in the first-level cache.
inline constexpr std::size_t kCommonLines = 16;
inline constexpr std::size_t kEagerLines = 64;
inline constexpr std::size_t kLines = kCommonLines + kEagerLines;
/// What a member contributes to an eager call at most.
inline constexpr std::size_t kEagerCallBytes = 1024;
inline constexpr std::size_t kSlotBytes = 8 * 1024;
inline constexpr std::size_t kPieceBytes = 32 * 1024;
inline constexpr std::size_t kCells = 4;
inline constexpr std::size_t kStepBytes = 2 * kPieceBytes;

/// Room for the payloads of all members, where announcements go along a tree.
inline constexpr std::size_t kAllPayloadsBytes = 32 * 1024;
inline constexpr std::size_t kMostMembersInTree = kAllPayloadsBytes / kPayloadBytes;

/// Members of one node: a piece has room for an element of 8 bytes for each.
inline constexpr std::size_t kMostMembers = kPieceBytes / 8;

/// Payload, then, by a release store, the word: {sequence, fingerprint of the call}, 32 bits each.
struct alignas(kFlagSpacing) Line {
  std::array<std::byte, kPayloadBytes> payload;
  std::atomic<std::uint64_t> word{0};
};

/// The fields of a call that 32 bits cannot always hold exactly. They come first in the payload of every call
/// whose data is elsewhere, and are compared in full, so that a collision of fingerprints cannot make members
/// exchange different amounts.
struct CallDetails {
  std::uint64_t elements = 0;
  std::uint64_t layout = 0;
  std::int64_t root = 0;
  std::uint64_t number = 0;  ///< of the call, among those of all priorities
};

/// What follows the details in a call whose data is too large for the slot: where the member's buffers are.
/// Either offsets into its heap, or addresses of its process.
struct BufferAddresses {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
  bool input_in_heap = false;
  bool output_in_heap = false;
};
static_assert(sizeof(CallDetails) + sizeof(BufferAddresses) <= kPayloadBytes);

/// A message on its way, in the control block of its sender.
struct alignas(64) Envelope {
  enum class State : std::uint32_t {
    kFree,
    kPosted,      ///< by the sender
    kBeingTaken,  ///< the receiver copies the contents
    kWithdrawn,   ///< the sender gave up meanwhile; the receiver drops what it has copied and frees it
    kTaken,
  };
  std::atomic<State> state{State::kFree};
  // Receivers look at these while a sender that gave up may already use the envelope for another message.
  std::atomic<std::int32_t> to{0};
  std::atomic<std::int32_t> tag{0};
  std::atomic<std::uint64_t> number{0};  ///< messages are received in the order in which they were sent
  DType dtype = DType::kUInt8;
  bool in_heap = false;
  std::uint64_t elements = 0;
  std::uint64_t address = 0;
};
inline constexpr std::size_t kEnvelopes = 16;

/// Where further envelopes of a sender are, plus 1; 0 for none. An offset into its heap, or an address
/// where all members are of one process.
using EnvelopeChain = std::atomic<std::uint64_t>;

/// Envelopes beyond the first ones, made when all of those are posted: no message may wait for one that is
/// received after it.
struct MoreEnvelopes {
  std::array<Envelope, 4 * kEnvelopes> envelopes;
  EnvelopeChain more{0};
};

/// The first error of the group, on which all members agree; in the control block of member 0.
struct FailureRecord {
  enum class State : std::uint32_t { kNone, kBeingWritten, kWritten };
  std::atomic<State> state{State::kNone};
  std::int32_t code = 0;
  std::int32_t member = -1;
  std::array<char, 64> host{};
  std::array<char, 64> call{};
  std::array<char, 1600> text{};
  /// The node's report has been made. Before, a member that throws would end the job, and whoever makes it.
  std::atomic<bool> reported{false};
};

/// The flags and cells through which a member's calls of one priority go.
struct PriorityBlock {
  std::array<Line, kLines> lines;  ///< see LineRotation

  alignas(kFlagSpacing) std::atomic<std::uint64_t> pieces{
      0};  ///< pieces that lie in the cells, since the beginning
  alignas(kFlagSpacing) std::atomic<std::uint64_t> calls_done{
      0};  ///< direct and registered ones, shares, and what one reduces for all

  /// In member 0's block, written by any member: who reduces a call for all, as {sequence of the call, rank},
  /// 32 bits each.
  alignas(kFlagSpacing) std::atomic<std::uint64_t> reducer{0};

  /// Rung whenever its owner has raised one of the flags above.
  alignas(kFlagSpacing) Bell bell;

  /// The exact call, once this member has found a difference or waited for long. `described` is its sequence
  /// number.
  alignas(kFlagSpacing) std::atomic<std::uint64_t> described{0};
  CallSignature signature;
  /// The number of the described call among those of all priorities, from 1. If two members have described
  /// the same number at different priorities, they disagree. `explained_number` is set to it when the call
  /// can only fail.
  std::atomic<std::uint64_t> described_number{0};
  std::atomic<std::uint64_t> explained_number{0};

  /// What that call is for, in words (see to_line), once this member has found a difference. `worded` is its
  /// sequence number.
  std::atomic<std::uint64_t> worded{0};
  std::array<char, 400> words{};

  /// By line: what is contributed to an eager call that does not fit the line.
  alignas(kFlagSpacing) std::array<std::array<std::byte, kEagerCallBytes>, kLines> eager_payloads;

  alignas(4096) std::array<std::array<std::byte, kSlotBytes>, 2> slots;
  alignas(4096) std::array<std::array<std::byte, kPieceBytes>, kCells> cells;

  /// Where announcements go along a tree (see levels.h): of a member with children.
  std::array<Line, 2> gathered;  ///< all below this member have announced the call
  std::array<Line, 2> released;  ///< all members have; the payload is the result, if the call has one
  /// Blocks that this member has finished in a reduction along the sockets: {sequence, count}, 32 bits each.
  alignas(kFlagSpacing) std::atomic<std::uint64_t> blocks_done{0};
  alignas(4096) std::array<std::array<std::byte, kAllPayloadsBytes>, 2> all_payloads;
};

/// The calls of all members that something else carries out (CommunicatorBase::note_call_outside).
struct CallsOutside {
  /// {how many so far, collectives that the member had called here before the latest one}, 32 bits each.
  std::atomic<std::uint64_t> word{0};
  std::array<std::atomic<char>, 32> latest{};  ///< its name
};

/// All that a member shows the others.
struct ControlBlock {
  /// This member has left the communicator.
  alignas(kFlagSpacing) std::atomic<bool> left{false};
  /// How many of the others will not look at this control block any more; they count themselves.
  std::atomic<int> departures{0};
  CallsOutside outside;

  alignas(kFlagSpacing) FailureRecord failure;
  alignas(kFlagSpacing) std::array<Envelope, kEnvelopes> envelopes;
  EnvelopeChain more_envelopes{0};

  MemberRecord record;  ///< the member's latest calls, of all priorities

  std::array<PriorityBlock, kPriorities> priority_blocks;  ///< by priority
};

// ---- which line, slot and cell a member uses when

// The rules by which memory of the control blocks is written again without asking whether all have read it.
// tests/collective/cell_rotation_test.cpp tries them in every order of steps.
//
// With two members the cells of a pair change hands: the member that reads a cell fetches its cache lines
// for writing and fills this very cell in its next turn. Each cache line then crosses between
// the cores once per call, where cells of fixed owners cost two crossings. Nothing else guards
// a cell: a member writes to it only after it has read it itself.
//
// With more members a cell has several readers and stays its owner's. Two slots suffice, since no member
// reaches the second next call through slots before all have read this one. A member reads a piece after it
// has written the next one, so four cells do.
//
// In an eager call members that only send do not wait for the others, and go ahead by less calls than they
// have lines for. Who may be that far ahead looks at the others' words before it ends the call, so that its
// next line is always free.

/// Where a line, slot or cell is: the `index`-th in the control block of `owner`.
struct BufferLocation {
  int owner = 0;
  std::size_t index = 0;
};

/// Which of its lines a member uses next. That follows from the calls before, and not from the call itself:
/// so members that call different things look at the same line, and find out.
template <std::size_t kCommon, std::size_t kEager>
class LineRotationOf {
 public:
  /// The line of the open call.
  [[nodiscard]] std::size_t line() const noexcept { return line_; }
  /// That of the next one.
  [[nodiscard]] std::size_t next() const noexcept { return next_; }

  /// Goes on to the next call, which is eager or not.
  void open(bool is_eager) noexcept {
    line_ = next_;
    next_ = is_eager ? eager_line(eager_++) : common_line(common_++);
  }

  /// After an eager call: the line of the call number `distance` from here if those before it are eager, too;
  /// 1 for the next one. Negative for a call before this one, if those between were.
  [[nodiscard]] std::size_t among_eager(int distance) const noexcept {
    return eager_line(eager_ + static_cast<std::uint64_t>(distance) - 2);
  }

  /// The lines that the next call would have if the open one were eager, and if not.
  [[nodiscard]] std::array<std::size_t, 2> next_in_any_case() const noexcept {
    const bool is_eager = next_ >= kCommon;
    return {is_eager ? next_ : eager_line(eager_), is_eager ? common_line(common_) : next_};
  }

 private:
  [[nodiscard]] static std::size_t common_line(std::uint64_t use) noexcept { return use % kCommon; }
  [[nodiscard]] static std::size_t eager_line(std::uint64_t use) noexcept { return kCommon + use % kEager; }

  // The uses of eager and of common lines include the next one.
  std::size_t line_ = 0;
  std::uint64_t eager_ = 0;
  std::size_t next_ = 0;
  std::uint64_t common_ = 1;
};
using LineRotation = LineRotationOf<kCommonLines, kEagerLines>;

/// Which of its two lines for the tree a member uses in call number `sequence`; there no call is eager.
[[nodiscard]] constexpr std::size_t tree_line_of(std::uint64_t sequence) noexcept { return sequence % 2; }

/// Whether the owner of the block has announced call number `sequence` on this line, or a later one.
[[nodiscard]] inline bool has_announced(const PriorityBlock& block, std::size_t line,
                                        std::uint64_t sequence) noexcept {
  const std::uint64_t word = block.lines[line].word.load(std::memory_order_acquire);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(word >> 32) -
                                   static_cast<std::uint32_t>(sequence)) >= 0;
}

/// Where `member` puts what it contributes to the call that is the `number`-th to go through slots.
[[nodiscard]] constexpr BufferLocation slot_of(int member, std::uint64_t number, int members) noexcept {
  if (members == 2) return {static_cast<int>((static_cast<std::uint64_t>(member) + number) % 2), 0};
  return {member, number % 2};
}

/// Where `member` puts its `piece`-th piece since the beginning.
[[nodiscard]] constexpr BufferLocation cell_of(int member, std::uint64_t piece, int members,
                                               std::size_t cells = kCells) noexcept {
  const std::uint64_t turn = piece / cells;
  if (members == 2) return {static_cast<int>((static_cast<std::uint64_t>(member) + turn) % 2), piece % cells};
  return {member, piece % cells};
}

}  // namespace cohort::node
