// Writes a member's record: each call when it begins, when all have announced it, and when it ends. A call
// costs nine stores to memory of the member's own and up to three stamps; nothing is allocated or locked.
// One thread at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include <cohort/base/input_wait.h>
#include <cohort/collective/collective_call.h>

#include "base/stamp_clock.h"
#include "member_record.h"
#include "packed_call.h"

namespace cohort {

/// What a record says of its member.
struct RecordOwner {
  int rank = 0;
  int worker = 0;
  std::string_view communicator = {};
};

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

}  // namespace cohort
