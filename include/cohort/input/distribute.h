// The functions behind `strategy.distribute_dataset(dataset)` and
// `strategy.distribute_datasets_from_function(function)`.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/input/auto_shard.h>
#include <cohort/input/dataset.h>
#include <cohort/input/detail/local_steps.h>
#include <cohort/input/distributed_dataset.h>
#include <cohort/input/input_context.h>
#include <cohort/input/input_options.h>
#include <cohort/strategy/strategy.h>
#include <cohort/value/device_scope.h>

namespace cohort {

namespace detail {

[[nodiscard]] WorkerPlace place_of(const StrategyExtended& extended);

/// @throws InvalidArgument for options that contradict each other; Unimplemented for a pipeline per replica
/// where there cannot be one: for a dataset that is split, and with several workers.
void require_usable(const InputOptions& options, bool splits, const StrategyExtended& extended);

/// One element after the other; several replicas take turns.
template <class Element>
[[nodiscard]] StepSource<Element> in_turn(std::vector<Dataset<Element>> pipelines, int replicas) {
  const auto turns = static_cast<std::int64_t>(replicas) / static_cast<std::int64_t>(pipelines.size());
  Cardinality steps = pipelines.front().cardinality();
  std::optional<BatchSize> size = pipelines.front().node()->batch_size();
  for (const Dataset<Element>& pipeline : pipelines) {
    if (!(pipeline.cardinality() == steps)) steps = Cardinality::unknown();
    size = BatchSize::common(size, pipeline.node()->batch_size());
  }
  if (steps.is_known()) {
    // Whether the last elements make a step depends on what they are.
    steps = steps.count() % turns == 0 ? Cardinality::of(steps.count() / turns) : Cardinality::unknown();
  }
  return {.iterate =
              [=](const Pass& pass) {
                std::vector<std::unique_ptr<ElementIterator<Element>>> iterators;
                iterators.reserve(pipelines.size());
                for (const Dataset<Element>& pipeline : pipelines)
                  iterators.push_back(pipeline.node()->iterate(pass));
                return std::make_unique<ElementsInTurn<Element>>(std::move(iterators), replicas);
              },
          .steps = steps,
          .fixed_size = size && size->drops_remainder ? std::optional(size->elements) : std::nullopt};
}

/// Each batch split among all replicas.
template <class Element>
[[nodiscard]] StepSource<Element> split(const WorkerShard<Element>& shard, const WorkerPlace& place) {
  const std::optional<BatchSize> size = shard.dataset->batch_size();
  const bool is_fixed = size && size->drops_remainder && size->elements % place.replicas() == 0;
  const auto fixed_size = is_fixed ? std::optional(size->elements / place.replicas()) : std::nullopt;
  if (place.workers == 1 || shard.policy == AutoShardPolicy::kData) {
    return {.iterate =
                [=](const Pass& pass) {
                  return std::make_unique<SharedBatches<Element>>(shard.dataset->iterate(pass), place);
                },
            .steps = shard.dataset->cardinality(),
            .shared = true,
            .policy = shard.policy,
            .batch_elements = size ? std::optional(size->elements) : std::nullopt,
            .fixed_size = fixed_size};
  }
  const Streams streams = shard.policy == AutoShardPolicy::kOff ? Streams::kAlike : Streams::kDisjoint;
  const bool is_infinite = shard.dataset->cardinality().is_infinite();
  return {.iterate =
              [=](const Pass& pass) {
                return std::make_unique<OwnBatches<Element>>(shard.dataset->iterate(pass), size, place,
                                                             streams);
              },
          .steps = is_infinite ? Cardinality::infinite() : Cardinality::unknown(),
          .policy = shard.policy,
          .fixed_size = fixed_size};
}

}  // namespace detail

/// Called by `strategy.distribute_dataset(dataset, options)`. The dataset must be batched by the global batch
/// size. Under kData, and with one worker, every batch is a step and is split among all replicas in nearly
/// equal parts; otherwise each worker reads a stream of its own and cuts its batches to the parts of all
/// replicas, so that a batch makes as many steps as there are workers. A single replica gets the elements as
/// they are.
/// @throws InvalidArgument for options that contradict each other, for kFile where there are no files, or
/// fewer than workers, and, when iterated, for elements without a batch axis; Unimplemented for a pipeline
/// per replica.
template <class Element>
[[nodiscard]] DistributedDataset<Element> distribute(const Dataset<Element>& dataset,
                                                     const Strategy& strategy,
                                                     const DistributeOptions& options = {}) {
  StrategyExtended& extended = strategy.extended();
  const WorkerPlace place = detail::place_of(extended);
  detail::require_usable(options.input, true, extended);
  // Workers may find different files.
  const auto shard = extended.or_abort_workers(
      [&] { return detail::auto_shard(dataset.node(), options.auto_shard_policy, place); });
  auto source = place.replicas() == 1 ? detail::in_turn(std::vector{Dataset<Element>(shard.dataset)}, 1)
                                      : detail::split(shard, place);
  return {std::move(source), strategy, options.input};
}

/// Called by `strategy.distribute_datasets_from_function(function, options)`. `function(InputContext)`
/// returns a dataset of the replicas' batches, which are neither split nor sharded any more. It is called
/// once for this worker, or once for each replica, on the calling thread.
/// @throws InvalidArgument for options that contradict each other; Unimplemented for a pipeline per
/// replica with several workers; what `function` throws.
template <class Function>
[[nodiscard]] auto distribute_from_function(Function&& function, const Strategy& strategy,
                                            const InputOptions& options = {}) {
  static_assert(std::is_invocable_v<Function&, const InputContext&>,
                "the function of distribute_datasets_from_function() takes a const InputContext&");
  using Element =
      typename std::remove_cvref_t<std::invoke_result_t<Function&, const InputContext&>>::value_type;
  StrategyExtended& extended = strategy.extended();
  const WorkerPlace place = detail::place_of(extended);
  detail::require_usable(options, false, extended);
  auto pipelines = extended.or_abort_workers([&] {
    std::vector<Dataset<Element>> made;
    if (options.replication_mode == InputReplicationMode::kPerWorker) {
      made.push_back(function(InputContext{place.workers, place.worker, place.replicas()}));
      return made;
    }
    for (int replica = 0; replica < place.replicas(); ++replica) {
      std::optional<DeviceScope> on_device;
      if (options.place_dataset_on_device) on_device.emplace(extended.device(replica));
      made.push_back(function(InputContext{place.replicas(), replica, place.replicas()}));
    }
    return made;
  });
  return DistributedDataset<Element>(detail::in_turn(std::move(pipelines), place.replicas_per_worker),
                                     strategy, options);
}

}  // namespace cohort
