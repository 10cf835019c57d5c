// A DistributedDataset deals each global batch out to the replicas: iterating it gives,
// on every worker, the parts of that worker's replicas. All workers take the same
// number of steps; when a batch is smaller than the number of replicas, some parts are
// empty. It cannot be transformed further: transform the dataset first.
//
//     for (const auto& batch : strategy.distribute_dataset(digits.batch(256))) strategy.run(step, batch);
#pragma once

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include <cohort/input/dataset.h>
#include <cohort/strategy/strategy.h>

namespace cohort {

template <class Element>
class DistributedDataset {
 public:
  class Iterator;

  DistributedDataset(Dataset<Element> dataset, Strategy strategy)
      : dataset_(std::move(dataset)), strategy_(std::move(strategy)) {}

  /// @throws WrongContext inside a replica: iterate outside, and pass the batch to run().
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  Dataset<Element> dataset_;
  Strategy strategy_;
};

/// What `strategy.distribute_dataset(dataset)` calls; the dataset must be batched by the global
/// batch size. @throws InvalidArgument, when iterated, for elements without a batch axis.
template <class Element>
[[nodiscard]] DistributedDataset<Element> distribute(const Dataset<Element>& dataset,
                                                     const Strategy& strategy) {
  return {dataset, strategy};
}

/// One pass over a DistributedDataset.
template <class Element>
class DistributedDataset<Element>::Iterator {
 public:
  using value_type = PerReplica<Element>;
  using difference_type = std::ptrdiff_t;

  Iterator(std::unique_ptr<ElementIterator<Element>> elements, Strategy strategy)
      : elements_(std::move(elements)), strategy_(std::move(strategy)) {
    advance();
  }

  const PerReplica<Element>& operator*() const { return current_; }
  Iterator& operator++() {
    advance();
    return *this;
  }
  void operator++(int) { advance(); }
  friend bool operator==(const Iterator& iterator, std::default_sentinel_t) { return iterator.ended_; }

 private:
  void advance() {
    const StrategyExtended& extended = strategy_.extended();
    extended.require_cross_replica("iterating a distributed dataset");
    auto parts = elements_->next_parts([&](std::int64_t rows) {
      std::vector<RowRange> mine;
      mine.reserve(static_cast<std::size_t>(extended.local_replicas()));
      for (int local = 0; local < extended.local_replicas(); ++local) {
        mine.push_back(part_of(rows, extended.first_replica_id() + local, extended.num_replicas_in_sync()));
      }
      return mine;
    });
    ended_ = !parts;
    if (parts) current_ = PerReplica<Element>(std::move(*parts));
  }

  std::unique_ptr<ElementIterator<Element>> elements_;
  Strategy strategy_;
  PerReplica<Element> current_;
  bool ended_ = false;
};

template <class Element>
typename DistributedDataset<Element>::Iterator DistributedDataset<Element>::begin() const {
  strategy_.extended().require_cross_replica("iterating a distributed dataset");
  return Iterator(dataset_.iterate(), strategy_);
}

}  // namespace cohort
