// What is measured in a sweep: one collective over a range of sizes.
#pragma once

#include <cohort/collective/reduce_op.h>

#include "harness.h"
#include "option_values.h"

namespace cohort::bench {

struct SweepOptions {
  const Collective* collective = nullptr;
  SizeRange sizes;
  ReduceOp op = ReduceOp::kSum;
  bool in_place = false;
  HarnessOptions harness;
};

}  // namespace cohort::bench
