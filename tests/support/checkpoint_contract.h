// What checkpoints of several workers must do, whatever the workers are: threads or ranks.
#pragma once

#include <string>

#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

// Collective; all workers pass the same new folder, which all see.
void check_saving_and_restoring(Bootstrap& worker, int devices, const std::string& folder);
void check_values_of_the_first_worker(Bootstrap& worker, const std::string& folder);
void check_failure_of_one_worker(Bootstrap& worker, const std::string& folder);
void check_other_values(Bootstrap& worker, const std::string& folder);
void check_saving_in_background(Bootstrap& worker, const std::string& folder);
void check_a_value_that_fails(Bootstrap& worker, const std::string& folder);
void check_metrics_in_checkpoints(Bootstrap& worker, const std::string& folder);

}  // namespace cohort::testing
