// A DistributedDataset gives each replica its batches. Iterating it gives, step by step, the batches of this
// worker's replicas. It cannot be transformed further: transform the dataset first. With several workers, all
// of them begin and iterate together.
//
//     for (const auto& batch : strategy.distribute_dataset(digits.batch(256))) strategy.run(step, batch);
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/input/cardinality.h>
#include <cohort/input/detail/local_steps.h>
#include <cohort/input/detail/prefetch.h>
#include <cohort/input/distributed_iterator.h>
#include <cohort/input/input_options.h>

namespace cohort {

namespace detail {

/// The source of the batches of a worker's replicas.
template <class Element>
struct StepSource {
  std::function<std::unique_ptr<LocalSteps<Element>>(const Pass&)> iterate = {};
  Cardinality steps = Cardinality::unknown();  ///< of this worker, if known without reading
  bool shared = false;  ///< every worker reads everything, so that all have the same steps
  std::optional<AutoShardPolicy> policy = {};       ///< nothing where a function has made the dataset
  std::optional<std::int64_t> batch_elements = {};  ///< of a global batch, where it is split and known
  /// The size of every batch of every replica, if it is fixed and remainders are dropped; then every step has
  /// such a batch for each replica.
  std::optional<std::int64_t> fixed_size = {};
};

}  // namespace detail

template <class Element>
class DistributedDataset {
 public:
  class Iterator;

  /// For distribute_dataset and distribute_datasets_from_function.
  DistributedDataset(detail::StepSource<Element> source, Strategy strategy, const InputOptions& options)
      : source_(std::move(source)), strategy_(std::move(strategy)), options_(options) {}

  /// A new pass, by range-for or step by step.
  /// @throws WrongContext inside a replica: iterate outside, and pass the batches to run().
  [[nodiscard]] Iterator begin() const { return Iterator(iterate()); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }
  [[nodiscard]] DistributedIterator<Element> iterate() const {
    return iterate_at({.pass = passes_->fetch_add(1)});
  }

  /// A pass from the position that `position()` of an iterator gave, in this process or another, with as many
  /// workers and replicas: the same remaining steps. Later passes have the following numbers.
  [[nodiscard]] Iterator begin_at(const DatasetPosition& position) const {
    return Iterator(iterate_at(position));
  }
  [[nodiscard]] DistributedIterator<Element> iterate_at(const DatasetPosition& position) const;

  /// The number of steps, as far as it is known without reading and without asking other workers.
  [[nodiscard]] Cardinality cardinality() const {
    const bool alone = source_.shared || strategy_.extended().workers() == 1;
    return alone || source_.steps.is_infinite() ? source_.steps : Cardinality::unknown();
  }

  /// The number of rows that every batch of every replica has; nothing where that may differ from step to
  /// step, or between replicas: where the dataset keeps a remainder, and with several workers, of which
  /// one may run out of data before the others.
  [[nodiscard]] std::optional<std::int64_t> per_replica_batch_size() const {
    const bool lasts = strategy_.extended().workers() == 1 || source_.steps.is_infinite();
    return lasts ? source_.fixed_size : std::nullopt;
  }

  /// `state = function(state, batches)` for each step of a new pass, beginning with `initial`.
  template <class State, class Function>
  [[nodiscard]] State reduce(State initial, Function&& function) const {
    constexpr bool kTakesStep = std::is_invocable_r_v<State, Function&, State, const PerReplica<Element>&>;
    static_assert(
        kTakesStep,
        "the function of reduce() takes (State, const PerReplica<Element>&) and returns a State, which "
        "is the type of the initial value");
    if constexpr (kTakesStep) {
      for (const PerReplica<Element>& batches : *this) initial = function(std::move(initial), batches);
    }
    return initial;
  }

 private:
  detail::StepSource<Element> source_;
  Strategy strategy_;
  InputOptions options_;
  std::shared_ptr<std::atomic<std::uint64_t>> passes_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// One pass, for range-for.
template <class Element>
class DistributedDataset<Element>::Iterator {
 public:
  using value_type = PerReplica<Element>;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(DistributedIterator<Element> steps)
      : steps_(std::move(steps)), position_(steps_.position()), current_(steps_.get_next_as_optional()) {}

  const PerReplica<Element>& operator*() const& { return *current_; }
  PerReplica<Element> operator*() && { return std::move(*current_); }
  Iterator& operator++() {
    const DatasetPosition position = steps_.position();
    current_ = steps_.get_next_as_optional();  // throws, without a change, if replicas call it
    position_ = position;
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& iterator, std::default_sentinel_t) { return !iterator.current_; }

  /// Where this iterator stands: a pass that begins there starts with the current step.
  [[nodiscard]] DatasetPosition position() const noexcept { return position_; }

 private:
  DistributedIterator<Element> steps_;
  DatasetPosition position_;
  std::optional<PerReplica<Element>> current_;
};

template <class Element>
DistributedIterator<Element> DistributedDataset<Element>::iterate_at(const DatasetPosition& position) const {
  StrategyExtended& extended = strategy_.extended();
  extended.require_cross_replica("iterating a distributed dataset");
  std::uint64_t passes = passes_->load();
  while (passes <= position.pass && !passes_->compare_exchange_weak(passes, position.pass + 1)) {
  }
  detail::StepAgreement agreement(extended,
                                  {source_.steps, source_.shared, source_.policy, source_.batch_elements});
  const bool on_devices = options_.fetch_to_device || options_.place_dataset_on_device;
  std::vector<Device> places;
  places.reserve(static_cast<std::size_t>(extended.local_replicas()));
  for (int replica = 0; replica < extended.local_replicas(); ++replica)
    places.push_back(on_devices ? extended.device(replica) : Device());
  auto steps = extended.or_abort_workers([&] {
    std::unique_ptr<detail::LocalSteps<Element>> own = source_.iterate(detail::Pass(position.pass));
    if (options_.fetch_to_device)
      own = std::make_unique<detail::FetchedParts<Element>>(std::move(own), places);
    if (options_.per_replica_buffer_size > 0) {
      own = std::make_unique<detail::Prefetched<detail::LocalParts<Element>>>(
          std::move(own), options_.per_replica_buffer_size + 1);
    }
    own->skip(position.elements);
    return own;
  });
  return DistributedIterator<Element>(std::move(steps), std::move(agreement), strategy_, position,
                                      std::move(places), !source_.fixed_size);
}

}  // namespace cohort
