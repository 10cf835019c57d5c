// What became of the executions of a worker that is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <cohort/base/error.h>

#include "server/connections.h"

namespace cohort::coordinator {

/// An execution that was committed: what the function returned, or why its effects are not complete.
struct SettledExecution {
  std::vector<std::byte> result = {};
  std::unique_ptr<Error> failure = {};
};

/// From now on the servers take nothing more from the worker's process. Those of its executions that were
/// committed, by number: on several servers, all of them make their parts now. Of the others nothing is left,
/// and they may be run again.
/// @throws Unavailable naming a server that is lost.
[[nodiscard]] std::map<std::uint64_t, SettledExecution> settle_executions(server::Connections& connections,
                                                                          std::uint64_t incarnation);

}  // namespace cohort::coordinator
