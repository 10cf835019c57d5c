// What variables of several workers do, whatever the workers are: threads of this process
// or ranks. Every worker calls these functions.
#pragma once

#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

void check_creation(Bootstrap& worker);
void check_on_write_variables(Bootstrap& worker);
void check_on_read_variables(Bootstrap& worker);
void check_rows(Bootstrap& worker);
void check_updates(Bootstrap& worker);

}  // namespace cohort::testing
