// The collective that a member is in: which one it is, what the member announces about it, and what it waits
// for. The Endpoint updates it; the FailureWatch reads from it what is missing.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/reduction.h>

#include "collective/record/call_recorder.h"

namespace cohort::node {

/// What every other member must do before this one goes on.
enum class Awaited {
  kAnnouncements,  ///< of the call
  kPieces,         ///< in the cells
  kTurn,           ///< pieces, which each member passes on after the one before it
  kDone,           ///< of direct and registered collectives, of shares, and of what one reduces for all
};

/// What a member's announcement brings to the others beside its word.
struct Contents {
  std::size_t payload_bytes = 0;
  /// Where there is one, all need no more than the payloads reduced by it.
  ReductionKernel kernel = nullptr;
  std::size_t elements = 0;  ///< of the payload, for the kernel
  /// Where it is a member, all need no more than its payload.
  int source = -1;

  /// Whether one payload goes to all members: a result, or that of the source.
  [[nodiscard]] bool goes_as_one() const noexcept { return kernel != nullptr || source >= 0; }
};

struct OpenCall {
  std::uint64_t number = 0;  ///< of the program's collective, among those of all priorities; parts share it
  /// The collective that this is a part of; null: it is whole itself. The whole in turn may be a barrier by
  /// which members agree on another call, the one that it `stands_for`.
  const CollectiveCall* whole = nullptr;
  std::uint64_t sequence = 0;  ///< announcements so far: a collective in parts has several
  std::uint64_t word = 0;      ///< what is announced: {sequence, fingerprint}, 32 bits each
  bool payload_has_details = false;
  Contents contents = {};
  bool disagreement = false;  ///< some member has called something else

  CallRecorder* recorder = nullptr;  ///< set once
  CallRecorder::Entry record;        ///< of the program's collective

  int next_to_check = 0;  ///< members before it have done what is awaited
  Awaited awaited = Awaited::kAnnouncements;
  std::uint64_t awaited_count = 0;

  /// What the program has called: `call`, or what it is a part of, or stands for.
  [[nodiscard]] const CollectiveCall& as_called(const CollectiveCall& call) const noexcept {
    return (whole == nullptr ? call : *whole).as_called();
  }
};

}  // namespace cohort::node
