// A call as one member saw it, for those who draw or add up what a job does.
#pragma once

#include <cstdint>

#include "call_arrivals.h"
#include "collective/record/member_record.h"

namespace cohort {

/// Times are in nanoseconds of the chief's steady clock.
struct ObservedCall {
  int worker = -1;
  std::uint64_t number = 0;
  PackedCall call = {};
  std::int64_t arrival = 0;
  std::int64_t node_here = 0;  ///< all members of the node had come
  std::int64_t all_here = 0;   ///< those of all nodes had
  std::int64_t end = 0;
  int last = -1;           ///< the worker that came last of the node
  TimeAway away = {};      ///< from its call before to this one
  std::int64_t input = 0;  ///< that its process had waited for input in all, when it came
};

/// A message that a member sends or receives.
struct ObservedMessage {
  int worker = -1;
  PackedCall call = {};
  double stands_for = 1;  ///< messages of this member, where the reader has missed some
};

}  // namespace cohort
