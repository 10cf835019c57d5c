// The elements that a predicate holds for.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <cohort/input/detail/transformation_node.h>

namespace cohort::detail {

template <class Element>
using Predicate = std::shared_ptr<const std::function<bool(const Element&)>>;

template <class Element>
class Filtered final : public ElementIterator<Element> {
 public:
  Filtered(std::unique_ptr<ElementIterator<Element>> source, Predicate<Element> keep)
      : source_(std::move(source)), keep_(std::move(keep)) {}

  std::optional<Element> next() override {
    std::optional<Element> element = source_->next();
    while (element && !(*keep_)(*element)) element = source_->next();
    return element;
  }

 private:
  std::unique_ptr<ElementIterator<Element>> source_;
  Predicate<Element> keep_;
};

template <class Element>
class FilterNode final : public TransformationNode<Element> {
 public:
  FilterNode(DatasetNodePtr<Element> source, Predicate<Element> keep)
      : TransformationNode<Element>(std::move(source)), keep_(std::move(keep)) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return std::make_unique<Filtered<Element>>(this->source().iterate(pass), keep_);
  }

  [[nodiscard]] Cardinality cardinality() const override {
    return this->source().cardinality() == Cardinality::of(0) ? Cardinality::of(0) : Cardinality::unknown();
  }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<FilterNode>(std::move(source), keep_);
  }

  Predicate<Element> keep_;
};

}  // namespace cohort::detail
