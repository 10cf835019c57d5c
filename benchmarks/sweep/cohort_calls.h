// How Cohort is called for each of the collectives.
#pragma once

#include <vector>

#include <cohort/collective/communicator.h>

#include "collective.h"

namespace cohort::bench {

struct CohortCall {
  Communicator* communicator = nullptr;
  Tensor input;
  Tensor output;
  ReduceOp op = ReduceOp::kSum;
  std::vector<std::size_t> counts;  ///< of each member, where they differ
};

using CohortFunction = void (*)(const CohortCall& call);

/// The function that makes the blocking call of `collective`.
[[nodiscard]] CohortFunction cohort_function(const Collective& collective);

}  // namespace cohort::bench
