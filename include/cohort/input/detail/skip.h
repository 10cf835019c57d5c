// All but the first elements of a dataset.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <cohort/input/detail/transformation_node.h>

namespace cohort::detail {

template <class Element>
class SkipNode final : public TransformationNode<Element> {
 public:
  SkipNode(DatasetNodePtr<Element> source, std::int64_t count)
      : TransformationNode<Element>(std::move(source)), count_(count) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    auto elements = this->source().iterate(pass);
    elements->skip(count_);
    return elements;
  }

  [[nodiscard]] Cardinality cardinality() const override {
    const Cardinality all = this->source().cardinality();
    return all.is_known() ? Cardinality::of(std::max<std::int64_t>(all.count() - count_, 0)) : all;
  }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<SkipNode>(std::move(source), count_);
  }

  std::int64_t count_;
};

}  // namespace cohort::detail
