// Everything that a training program needs, except the way it starts: add
// <cohort/mpi/session.h> for programs under mpirun or srun, <cohort/resolvers/task_cluster_resolver.h> for
// those that `cohort-run --roles` starts; and <cohort/rpc/server.h> and <cohort/rpc/client.h> where tasks
// call methods of each other.
#pragma once

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/base/version.h>
#include <cohort/checkpoint/checkpoint_manager.h>
#include <cohort/checkpoint/preemption_checkpoint_handler.h>
#include <cohort/collective/gradient_buckets.h>
#include <cohort/coordinator/cluster_coordinator.h>
#include <cohort/coordinator/serve.h>
#include <cohort/device/tensor.h>
#include <cohort/device/tensor_ops.h>
#include <cohort/input/dataset.h>
#include <cohort/input/distribute.h>
#include <cohort/input/files/csv.h>
#include <cohort/input/files/fixed_length_record.h>
#include <cohort/input/files/idx.h>
#include <cohort/input/files/npy.h>
#include <cohort/input/files/text_line.h>
#include <cohort/input/files/tf_record.h>
#include <cohort/input/make_dataset.h>
#include <cohort/server/caching_scope.h>
#include <cohort/server/parameter_server_strategy.h>
#include <cohort/server/partitioners.h>
#include <cohort/server/sharded_variable.h>
#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/logical_device_strategy.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/strategy/strategy.h>
#include <cohort/train/losses/average_loss.h>
<<<<<<< HEAD
#include <cohort/train/losses/classification_losses.h>
#include <cohort/train/losses/loss.h>
#include <cohort/train/losses/loss_reduction.h>
#include <cohort/train/losses/regression_losses.h>
#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/metrics/means.h>
#include <cohort/train/metrics/metric.h>
#include <cohort/train/metrics/metric_set.h>
#include <cohort/train/optimizers/momentum.h>
=======
>>>>>>> main
#include <cohort/train/moving_average.h>
#include <cohort/train/normalization/sync_batch_norm.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/callback.h>
#include <cohort/trainer/trainer.h>
#include <cohort/value/device_scope.h>
#include <cohort/value/mirrored.h>
#include <cohort/value/per_replica.h>
#include <cohort/value/structure.h>
#include <cohort/value/variable.h>
#include <cohort/value/variable_creator_scope.h>
