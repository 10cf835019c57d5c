// What distributed datasets do for every number of workers and devices. Each worker calls
// the checks, all of them the same ones in the same order; workers are threads or ranks.
#pragma once

#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

/// Each element goes to one replica, once per pass, whatever the sizes.
void check_each_element_once(Bootstrap& worker, int devices);

/// Workers whose own data ends at different times take the same number of steps.
void check_equal_steps(Bootstrap& worker, int devices);

/// A pass that is resumed at any position gives the steps that were left.
void check_positions(Bootstrap& worker, int devices);

/// A worker that cannot read on ends the step of all.
void check_failing_reader(Bootstrap& worker, int devices);

}  // namespace cohort::testing
