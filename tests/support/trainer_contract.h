// What a Trainer of several workers does, whatever the workers are: threads of this process or ranks. Every
// worker calls these functions, all with the same number of devices.
#pragma once

#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

/// The losses and the parameters are those of one replica.
void check_fit(Bootstrap& worker, int devices);

/// A step, a callback, a metric or a dataset that throws on the last worker ends the fit on all, and names
/// it.
void check_step_that_throws(Bootstrap& worker, int devices);
void check_callback_that_throws(Bootstrap& worker, int devices);
void check_metric_that_throws(Bootstrap& worker, int devices);
void check_dataset_that_throws(Bootstrap& worker, int devices);

}  // namespace cohort::testing
