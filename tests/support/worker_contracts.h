// What the layers above communicators do with several workers, whatever these are: threads of this process or
// ranks. Every worker calls these functions, all of them the same ones in the same order, with the same
// number of devices.
#pragma once

#include <functional>
#include <string>

#include <cohort/checkpoint/termination_config.h>
#include <cohort/cluster/bootstrap.h>
#include <cohort/device/device.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

namespace cohort::testing {

/// The strategy that workers check together.
inline MultiWorkerMirroredStrategy strategy_of(Bootstrap& worker, int devices) {
  return MultiWorkerMirroredStrategy(worker, {.timeout_seconds = 60}, cpu_devices(devices));
}

// What variables of several workers do.

void check_creation(Bootstrap& worker, int devices);
void check_on_write_variables(Bootstrap& worker, int devices);
void check_on_read_variables(Bootstrap& worker, int devices);
void check_rows(Bootstrap& worker, int devices);
void check_updates(Bootstrap& worker, int devices);

// What SyncBatchNorm of several workers does.

/// Uneven and empty parts: outputs, moving statistics and gradients are those of one replica that has all
/// rows.
void check_batch_norm_of_all_rows(Bootstrap& worker, int devices);

/// With reproducible communication the same to the last bit, in every dtype, for rows that are hard to sum.
void check_bits_of_batch_norm(Bootstrap& worker, int devices);

/// Normalizations that replicas make in different orders are named.
void check_batch_norms_that_differ(Bootstrap& worker, int devices);

// What metrics of several workers do.

void check_metrics(Bootstrap& worker, int devices);
void check_metric_sets(Bootstrap& worker, int devices);
void check_reduced_losses(Bootstrap& worker, int devices);

// What a ShardedOptimizer of several workers does.

/// Several optimizers, dtypes and ways to aggregate: variables have the bits that the optimizer alone gives
/// them. Between nodes that needs reproducible communication.
void check_bits_of_shares(Bootstrap& worker, int devices, bool reproducible);

/// The same with each of the update options.
void check_options_of_shares(Bootstrap& worker, int devices);

/// Each replica has its share of the slots.
void check_slots_of_shares(Bootstrap& worker, int devices);

/// Replicas that pass other variables, or a gradient that does not fit, are named everywhere.
void check_odd_shares(Bootstrap& worker, int devices);

// What distributed datasets do for every number of workers and devices.

/// Each element goes to one replica, once per pass, whatever the sizes.
void check_each_element_once(Bootstrap& worker, int devices);

/// Workers whose own data ends at different times take the same number of steps.
void check_equal_steps(Bootstrap& worker, int devices);

/// A pass that is resumed at any position gives the steps that were left.
void check_positions(Bootstrap& worker, int devices);

/// A worker that cannot read on ends the step of all.
void check_failing_reader(Bootstrap& worker, int devices);

// What replicas on several devices of several workers do together. The checks of errors leave the cluster
// usable.

void check_numbering(Bootstrap& worker, int devices);
void check_reduce(Bootstrap& worker, int devices);
void check_reduce_along_an_axis(Bootstrap& worker, int devices);
void check_batch_reduce_to(Bootstrap& worker, int devices);
void check_slices(Bootstrap& worker, int devices);
void check_gather(Bootstrap& worker, int devices);
void check_collectives_in_replicas(Bootstrap& worker, int devices);
void check_merge_call(Bootstrap& worker, int devices);
void check_optimizers(Bootstrap& worker, int devices);
void check_input(Bootstrap& worker, int devices);

/// The first worker is in a collective of the workers, the others' replicas in one of their own.
void check_worker_ahead(Bootstrap& worker, int devices);

/// A reduction that may take longer than the strategy's other calls waits for a worker that is late.
void check_deadline_of_a_call(Bootstrap& worker, int devices);

/// The last replica of all throws; all others are released, in collectives of replicas and of workers.
void check_failing_replica(Bootstrap& worker, int devices);
void check_failing_merge(Bootstrap& worker, int devices);

/// The last replica of all cannot make a collective, and goes on: the others do not take its next one for it.
void check_unmade_collective(Bootstrap& worker, int devices);

/// The replicas of the last worker differ, which the other workers cannot see.
void check_replicas_that_differ(Bootstrap& worker, int devices);

// Every collective of the strategy layer against every other one: on one odd replica, and on one odd worker.
// No pair ends without an error that names both, on all replicas and workers.

/// Among the replicas of a MirroredStrategy, and among those of a strategy that keeps single copies.
void check_odd_replicas(int replicas);

struct OddWorkers {
  int every = 1;           ///< each so-many-th pair is tried
  bool are_known = false;  ///< communicators know the workers' numbers, which those of threads do not
};

/// Every worker calls it.
void check_odd_workers(Bootstrap& worker, int devices, const OddWorkers& options);

/// Workers that make variables in another order, with other names, shapes or kinds, and those that may name
/// them as they like.
void check_variable_names(Bootstrap& worker, int devices);

/// Workers that distribute different datasets.
void check_odd_datasets(Bootstrap& worker, int devices);

// What a Trainer of several workers does.

/// The losses and the parameters are those of one replica.
void check_fit(Bootstrap& worker, int devices);

/// A step, a callback, a metric or a dataset that throws on the last worker ends the fit on all, and names
/// it.
void check_step_that_throws(Bootstrap& worker, int devices);
void check_callback_that_throws(Bootstrap& worker, int devices);
void check_metric_that_throws(Bootstrap& worker, int devices);
void check_dataset_that_throws(Bootstrap& worker, int devices);

// What checkpoints of several workers do. All workers pass the same new folder, which all see.
void check_saving_and_restoring(Bootstrap& worker, int devices, const std::string& folder);
void check_values_of_the_first_worker(Bootstrap& worker, const std::string& folder);
void check_failure_of_one_worker(Bootstrap& worker, const std::string& folder);
void check_other_values(Bootstrap& worker, const std::string& folder);
void check_saving_in_background(Bootstrap& worker, const std::string& folder);
void check_a_value_that_fails(Bootstrap& worker, const std::string& folder);
void check_metrics_in_checkpoints(Bootstrap& worker, const std::string& folder);

/// Each worker reads its own safetensors file, also where they differ or one is missing.
void check_loading_safetensors(Bootstrap& worker, int devices, const std::string& folder);

// Checkpoints of optimizers whose slots are spread over workers.

/// Saved from shares and from whole slots, restored into either, by the same and by other numbers of devices
/// and workers: the training goes on with the same bits. All workers pass the same new folder, which all see.
void check_checkpoints_of_shares(Bootstrap& worker, int devices, const std::string& folder);

// What a PreemptionCheckpointHandler of several workers does.

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

// All workers pass the same new folder, which all see.
void check_preemption(Bootstrap& worker, const std::string& folder, const MakePreemption& make);
void check_preemption_in_the_last_steps(Bootstrap& worker, const std::string& folder,
                                        const MakePreemption& make);
void check_grace_period(Bootstrap& worker, const std::string& folder, const MakePreemption& make);
void check_error_in_a_step(Bootstrap& worker, const std::string& folder);
void check_other_config(Bootstrap& worker, const std::string& folder);

}  // namespace cohort::testing
