// What metrics of several workers do, whatever the workers are: threads of this process or ranks. Every
// worker calls these functions, all with the same number of devices.
#pragma once

#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

void check_metrics(Bootstrap& worker, int devices);
void check_metric_sets(Bootstrap& worker, int devices);
void check_reduced_losses(Bootstrap& worker, int devices);

}  // namespace cohort::testing
