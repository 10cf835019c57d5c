// Checkpoints of optimizers whose slots are spread over workers, whatever the workers are: threads or ranks.
#pragma once

#include <string>

#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

/// Saved from shares and from whole slots, restored into either, by the same and by other numbers of devices
/// and workers: the training goes on with the same bits. All workers pass the same new folder, which all see.
void check_checkpoints_of_shares(Bootstrap& worker, int devices, const std::string& folder);

}  // namespace cohort::testing
