// Measures what the strategy layer adds to what replicas do: empty functions, merges, reads
// of variables, reductions of one number, and a step over as many variables as ResNet-50
// has. In one process, without MPI; beside it stands what the original was measured to take.
#pragma once

#include "dispatch/dispatch_options.h"
#include "dispatch/dispatch_result.h"
#include "tick_clock.h"

namespace cohort::bench {

[[nodiscard]] DispatchResult measure_dispatch(const DispatchOptions& options, const TickClock& clock);

}  // namespace cohort::bench
