// Reading a member's record while its owner may be writing to it, or after the owner was killed: an entry,
// the whole record, and, for those who look again and again, the groups whose records there are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "call_record.h"
#include "job_report.h"

namespace cohort {

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
