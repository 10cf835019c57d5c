// What a PreemptionCheckpointHandler of several workers must do, whatever the workers are: threads or ranks.
#pragma once

#include <functional>
#include <string>

#include <cohort/checkpoint/termination_config.h>
#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

/// How a worker learns, in the midst of a step, that it is about to be ended.
struct PreemptionOfOne {
  TerminationConfig config = {};
  std::function<void()> announce = {};  ///< returns when the worker's handler can know
};
using MakePreemption = std::function<PreemptionOfOne()>;

/// By a function that is asked.
PreemptionOfOne preemption_by_watcher();

/// By a signal to this process.
PreemptionOfOne preemption_by_signal(int signal);

// Collective; all workers pass the same new folder, which all see.
void check_preemption(Bootstrap& worker, const std::string& folder, const MakePreemption& make);
void check_preemption_in_the_last_steps(Bootstrap& worker, const std::string& folder,
                                        const MakePreemption& make);
void check_grace_period(Bootstrap& worker, const std::string& folder, const MakePreemption& make);
void check_error_in_a_step(Bootstrap& worker, const std::string& folder);
void check_other_config(Bootstrap& worker, const std::string& folder);

}  // namespace cohort::testing
