// What variables of several workers do, whatever the workers are: threads of this process
// or ranks. Every worker calls these functions, all with the same number of devices.
#pragma once

#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

void check_creation(Bootstrap& worker, int devices);
void check_on_write_variables(Bootstrap& worker, int devices);
void check_on_read_variables(Bootstrap& worker, int devices);
void check_rows(Bootstrap& worker, int devices);
void check_updates(Bootstrap& worker, int devices);

}  // namespace cohort::testing
