// A stage of a dataset's pipeline: a source, or a transformation of other stages. Immutable and shared; the
// state of a pass is in its iterators. Internal: programs use Dataset.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <cohort/input/batch_size.h>
#include <cohort/input/cardinality.h>
#include <cohort/input/detail/random_access.h>
#include <cohort/input/element_iterator.h>
#include <cohort/input/pass.h>
#include <cohort/input/shard.h>

namespace cohort::detail {

template <class Element>
class DatasetNode;

template <class Element>
using DatasetNodePtr = std::shared_ptr<const DatasetNode<Element>>;

template <class Element>
class DatasetNode {
 public:
  virtual ~DatasetNode() = default;

  [[nodiscard]] virtual std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const = 0;

  [[nodiscard]] virtual Cardinality cardinality() const = 0;

  /// The number of elements that a batching stage below put into each element of this stage; nothing
  /// when there is none, or a stage in between may have changed it.
  [[nodiscard]] virtual std::optional<BatchSize> batch_size() const { return std::nullopt; }

  /// Access to the elements in any order, where all are at hand and every pass has the same; otherwise null.
  [[nodiscard]] virtual std::shared_ptr<const RandomAccess<Element>> random_access() const { return nullptr; }

  /// This pipeline with the list of files at its source reduced to `shard`; null when it has no list
  /// of files to divide (a source in memory, a generator).
  [[nodiscard]] virtual DatasetNodePtr<Element> with_files_of(const Shard& shard) const = 0;

  /// This pipeline with every `shard(Shard::hint())` in it replaced by `shard`; null when it has none.
  [[nodiscard]] virtual DatasetNodePtr<Element> with_hints_as(const Shard& shard) const = 0;
};

}  // namespace cohort::detail
