// What a member has recorded of its latest calls, as it lies in its control block: the other members of its
// node can read it, also after its process was killed. Only the member writes, one thread of it at a time,
// without locks; nothing here owns memory.
//
// An entry carries a version: odd while its fields are written, even when they belong together. A reader
// looks at it before and after the fields (see read_record). An entry whose writer died in the middle stays
// odd for ever.
//
// First the record, then how a call is packed into an entry, then the recorder that the member writes with,
// then those who read: an entry, the whole record, and, for those who look again and again, the groups whose
// records there are.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/input_wait.h>
#include <cohort/collective/collective_call.h>

#include "base/clocks.h"
#include "base/system_calls.h"
#include "job_report.h"

namespace cohort {

/// Calls of a member that are kept.
inline constexpr std::size_t kRecordedCalls = 256;

/// One call. Stamps are those of StampClock.
struct CallEntry {
  /// Values of `end` that are no stamp; a counter passes them in its first nanosecond.
  static constexpr std::uint64_t kNotEnded = 0;
  static constexpr std::uint64_t kEndedAtOnce = 1;  ///< when the last member had arrived, so it has no stamp
  static constexpr std::uint64_t kFailed = 2;

  std::atomic<std::uint64_t> version{0};  ///< twice the number of entries written so far; 0: never written
  std::atomic<std::uint64_t> arrival{0};
  std::atomic<std::uint64_t> start{0};  ///< all had announced; 0: not yet, or not known
  std::atomic<std::uint64_t> end{kNotEnded};
  std::atomic<std::uint64_t> what{0};  ///< see PackedCall
  std::atomic<std::uint64_t> size{0};
  std::atomic<std::uint64_t> input{0};  ///< nanoseconds that the process had waited for input (see InputWait)
};
static_assert(sizeof(CallEntry) == 56);

/// The words of the call that a member waits in, once it has waited for a millisecond.
struct CallExplanation {
  std::atomic<std::uint64_t> version{0};  ///< of the entry that it belongs to; odd while it is written
  std::array<std::atomic<std::uint64_t>, 20> text{};  ///< characters, 8 at a time, padded with zeros
};

struct alignas(64) MemberRecord {
  /// Of the member in its communicator; -1 until the fields below are written, which then stay.
  std::atomic<std::int32_t> rank{-1};
  std::int32_t worker = -1;
  bool reads_counter = false;  ///< stamps are ticks of the processor's counter
  ProcessIdentity process;
  std::int32_t thread = 0;  ///< that has made the communicator
  std::array<char, 48> communicator{};

  /// Where this process keeps what the reports of a node share (see ReportLatch), as an offset into its heap,
  /// plus 1; 0: nowhere that others can see.
  std::uint64_t latch_offset = 0;

  std::atomic<std::uint64_t> begun{0};  ///< collectives, also those whose entries messages have replaced

  std::atomic<std::uint64_t> waited{0};  ///< ticks that its threads have waited for asynchronous calls

  CallExplanation explanation;
  std::array<CallEntry, kRecordedCalls> entries;
};

/// The fields of a call in the two words of an entry.
struct PackedCall {
  std::uint64_t what = 0;
  std::uint64_t size = 0;
};

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

/// What a record says of its member.
struct RecordOwner {
  int rank = 0;
  int worker = 0;
  std::string_view communicator = {};
};

/// Writes a member's record: each call when it begins, when all have announced it, and when it ends. A call
/// costs nine stores to memory of the member's own and up to three stamps; nothing is allocated or locked.
/// One thread at a time.
class CallRecorder {
 public:
  /// `record` must outlive it.
  CallRecorder(MemberRecord& record, const RecordOwner& owner);

  /// An entry of the record; the call may outlive it, since the ring goes on.
  struct Entry {
    CallEntry* entry = nullptr;
    std::uint64_t version = 0;
  };

  /// The member has come to `call`, and goes on before its end if it `is_async`. `number`: of a collective,
  /// among those of its communicator.
  Entry begin(const CollectiveCall& call, std::uint64_t number, bool is_async = false) noexcept {
    PackedCall packed = pack(call, number);
    packed.what |= AsyncField::pack(is_async ? 1 : 0);
    const Entry entry = write_entry(packed);
    if (!is_message(call.kind)) record_.begun.store(number + 1, std::memory_order_release);
    return entry;
  }

  /// The same of a collective that has been packed before, without its number.
  Entry begin_collective(PackedCall packed, std::uint64_t number) noexcept {
    packed.what |= NumberField::pack(number);
    const Entry entry = write_entry(packed);
    record_.begun.store(number + 1, std::memory_order_release);
    return entry;
  }

  /// All members have announced it; only the first time counts.
  void start(const Entry& call) const noexcept {
    if (is_kept(call) && call.entry->start.load(std::memory_order_relaxed) == 0)
      call.entry->start.store(clock_.now(), std::memory_order_release);
  }

  void end(const Entry& call) const noexcept {
    if (is_kept(call)) call.entry->end.store(clock_.now(), std::memory_order_release);
  }

  /// It has ended as soon as the last member had arrived, whose record tells when: a stamp is saved. Only for
  /// a call during which this member begins no others.
  void end_at_once(const Entry& call) const noexcept {
    call.entry->end.store(CallEntry::kEndedAtOnce, std::memory_order_release);
  }

  /// It has ended right when it began: a stamp is saved. As above.
  void end_at_arrival(const Entry& call) const noexcept {
    call.entry->end.store(call.entry->arrival.load(std::memory_order_relaxed), std::memory_order_release);
  }

  /// It has ended by an error of its own.
  void fail(const Entry& call) const noexcept {
    if (is_kept(call)) call.entry->end.store(CallEntry::kFailed, std::memory_order_release);
  }

  /// A thread of the member waits for an asynchronous call from here on, until `end_wait` gets what this
  /// returns. Any thread may.
  [[nodiscard]] std::uint64_t begin_wait() const noexcept { return clock_.now(); }
  void end_wait(std::uint64_t begin) const noexcept {
    record_.waited.fetch_add(clock_.now() - begin, std::memory_order_relaxed);
  }

  /// What the call is for, for a member that waits in it for long: `reads w`.
  void explain(const Entry& call, std::string_view words) noexcept;

 private:
  Entry write_entry(const PackedCall& packed) noexcept {
    CallEntry& entry = record_.entries[entries_++ % kRecordedCalls];
    const std::uint64_t version = 2 * entries_;
    // Each of these stores is seen after those before it, without a fence.
    entry.version.store(version - 1, std::memory_order_relaxed);
    entry.end.store(CallEntry::kNotEnded, std::memory_order_release);
    entry.start.store(0, std::memory_order_release);
    entry.what.store(packed.what, std::memory_order_release);
    entry.size.store(packed.size, std::memory_order_release);
    entry.input.store(InputWait::total(), std::memory_order_release);
    entry.arrival.store(clock_.now(), std::memory_order_release);
    entry.version.store(version, std::memory_order_release);
    return {&entry, version};
  }

  /// Whether no later call has taken its place.
  [[nodiscard]] static bool is_kept(const Entry& call) noexcept {
    return call.entry != nullptr && call.entry->version.load(std::memory_order_relaxed) == call.version;
  }

  MemberRecord& record_;
  const StampClock& clock_;
  std::uint64_t entries_ = 0;  ///< written so far
};

/// Fields of an entry that belong together.
struct EntryFields {
  std::uint64_t version = 0;
  std::uint64_t arrival = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  PackedCall call = {};
  std::uint64_t input = 0;
};

enum class EntryState { kEmpty, kTorn, kWhole };

/// Fills `fields`, which belong together if the entry was whole.
[[nodiscard]] inline EntryState read_entry(const CallEntry& entry, EntryFields& fields) noexcept {
  fields.version = entry.version.load(std::memory_order_acquire);
  if (fields.version == 0) return EntryState::kEmpty;
  // Each load comes before the next one, so the version is read last.
  fields.arrival = entry.arrival.load(std::memory_order_acquire);
  fields.start = entry.start.load(std::memory_order_acquire);
  fields.end = entry.end.load(std::memory_order_acquire);
  fields.call.what = entry.what.load(std::memory_order_acquire);
  fields.call.size = entry.size.load(std::memory_order_acquire);
  fields.input = entry.input.load(std::memory_order_acquire);
  const bool is_whole =
      fields.version % 2 == 0 && entry.version.load(std::memory_order_relaxed) == fields.version;
  return is_whole ? EntryState::kWhole : EntryState::kTorn;
}

/// What stamps are compared with.
struct StampScale {
  std::uint64_t now = 0;
  double seconds_per_tick = 0;

  /// Of this process's StampClock, at this moment.
  [[nodiscard]] static StampScale at_this_moment();

  /// 0 for a stamp that was taken since.
  [[nodiscard]] double seconds_since(std::uint64_t stamp) const noexcept {
    return stamp < now ? static_cast<double>(now - stamp) * seconds_per_tick : 0;
  }
};

/// A call without its times; nothing for what no call can be.
[[nodiscard]] std::optional<RecordedCall> unpack(const PackedCall& packed);

/// Fills what the record has: rank, worker, process and calls. Entries that were written meanwhile are
/// counted as torn. False if nobody owns the record yet.
[[nodiscard]] bool read_record(const MemberRecord& record, const StampScale& scale, ReportedMember& member);

/// The members of a communicator on one node.
struct ObservedGroup {
  const void* id = nullptr;
  std::string communicator = {};
  std::vector<const MemberRecord*> records = {};  ///< of this node's members
  std::vector<int> workers = {};                  ///< of the whole communicator, by rank
  /// More members than cores: the time at which a member comes says little of it.
  bool shares_cores = false;
};

/// Who looks at the records of a communicator's members while these go on, without their help. A group of
/// members shows its records to the observer of its process when it is made, and takes them back before a
/// member leaves.
class RecordObserver {
 public:
  virtual ~RecordObserver() = default;
  virtual void add(ObservedGroup group) = 0;
  /// When it returns, nobody reads the group's records any more.
  virtual void remove(const void* id) noexcept = 0;
  /// A line for each worker or link that makes the others wait at present, as far as this process was told.
  [[nodiscard]] virtual std::vector<std::string> slow_workers() const = 0;
};

}  // namespace cohort
