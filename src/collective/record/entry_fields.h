// An entry of a record, read while its member may be writing it.
#pragma once

#include <cstdint>

#include "member_record.h"
#include "packed_call.h"

namespace cohort {

/// Fields that belong together.
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

}  // namespace cohort
