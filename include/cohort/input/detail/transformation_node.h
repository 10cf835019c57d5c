// The base of transformations of one dataset, which leave sharding to their source.
#pragma once

#include <utility>

#include <cohort/input/detail/dataset_node.h>

namespace cohort::detail {

/// From elements of type `In` to elements of type `Out`.
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
