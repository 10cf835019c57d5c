// The messages between the coordinator and its workers.
#pragma once

#include <cstdint>

#include "server/protocol.h"

namespace cohort::coordinator {

enum class CoordinatorMessage : std::uint16_t {
  // To the coordinator:
  kJoin = static_cast<std::uint16_t>(server::MessageKind::kFirstOfCoordinator),
  kDone,      ///< a call has ended; number: of the call. Body: Outcome, then the result or the error
  kReturned,  ///< calls that were not begun, from this number on, 0 for none; answers kRecall
  // To a worker:
  kOtherBinary,  ///< the worker does not run the coordinator's program, and takes no part
  kVariables,    ///< variables that the coordinator has made
  kMake,         ///< an element of a PerWorker; number: of the PerWorker
  kFree,         ///< elements of PerWorkers that nobody uses any more; body: their numbers
  kRun,          ///< a call; numbered from 1 for each incarnation
  kCancel,       ///< calls up to this number are not wanted any more
  kRecall,       ///< calls that were not begun are given back
};

[[nodiscard]] constexpr std::uint16_t to_number(CoordinatorMessage kind) {
  return static_cast<std::uint16_t>(kind);
}

enum class Outcome : std::uint8_t { kSuccess, kFailure };

}  // namespace cohort::coordinator
