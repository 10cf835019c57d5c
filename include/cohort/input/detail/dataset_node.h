// The stages of a dataset's pipeline: sources, and transformations of other stages. They are immutable and
// shared; the state of a pass is in its iterators. Internal: programs use Dataset.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <cohort/input/batch_size.h>
#include <cohort/input/cardinality.h>
#include <cohort/input/element_iterator.h>
#include <cohort/input/pass.h>
#include <cohort/input/shard.h>

namespace cohort::detail {

/// Elements that can be read in any order, for stages that choose among them.
template <class Element>
class RandomAccess {
 public:
  virtual ~RandomAccess() = default;

  [[nodiscard]] virtual std::int64_t size() const = 0;
  [[nodiscard]] virtual Element at(std::int64_t index) const = 0;
  /// The elements `begin` to `end-1` stacked; a view, where that is possible.
  [[nodiscard]] virtual Element range(std::int64_t begin, std::int64_t end) const = 0;
  /// The elements at `indices` stacked, each copied once. No indices give a batch of no rows.
  [[nodiscard]] virtual Element stacked(std::span<const std::int64_t> indices) const = 0;
};

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

/// The base of sources that have no list of files to divide and nothing upstream.
template <class Element>
class SourceNode : public DatasetNode<Element> {
 public:
  [[nodiscard]] DatasetNodePtr<Element> with_files_of(const Shard& /*shard*/) const override {
    return nullptr;
  }
  [[nodiscard]] DatasetNodePtr<Element> with_hints_as(const Shard& /*shard*/) const override {
    return nullptr;
  }
};

/// The base of transformations of one dataset, from elements of type `In` to elements of type `Out`, which
/// leave sharding to their source.
template <class In, class Out = In>
class TransformationNode : public DatasetNode<Out> {
 public:
  explicit TransformationNode(DatasetNodePtr<In> source) : source_(std::move(source)) {}

  [[nodiscard]] DatasetNodePtr<Out> with_files_of(const Shard& shard) const override {
    DatasetNodePtr<In> source = source_->with_files_of(shard);
    return source ? over(std::move(source)) : nullptr;
  }
  [[nodiscard]] DatasetNodePtr<Out> with_hints_as(const Shard& shard) const override {
    DatasetNodePtr<In> source = source_->with_hints_as(shard);
    return source ? over(std::move(source)) : nullptr;
  }

 protected:
  /// This stage over another source.
  [[nodiscard]] virtual DatasetNodePtr<Out> over(DatasetNodePtr<In> source) const = 0;

  [[nodiscard]] const DatasetNode<In>& source() const { return *source_; }
  [[nodiscard]] const DatasetNodePtr<In>& shared_source() const { return source_; }

 private:
  DatasetNodePtr<In> source_;
};

}  // namespace cohort::detail
