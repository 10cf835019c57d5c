// What a member has recorded of its latest calls, as it lies in its control block: the other members of its
// node can read it, also after its process was killed. Only the member writes, one thread of it at a time,
// without locks; nothing here owns memory.
//
// An entry carries a version: odd while its fields are written, even when they belong together. A reader
// looks at it before and after the fields (see read_record). An entry whose writer died in the middle stays
// odd for ever.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/process_state.h"

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

}  // namespace cohort
