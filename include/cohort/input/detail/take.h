// The first elements of a dataset.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/transformation_node.h>

namespace cohort::detail {

template <class Element>
class Taken final : public ElementIterator<Element> {
 public:
  Taken(std::unique_ptr<ElementIterator<Element>> source, std::int64_t count)
      : source_(std::move(source)), left_(count) {}

  std::optional<Element> next() override {
    if (left_ == 0) return std::nullopt;
    --left_;
    return source_->next();
  }
  std::optional<std::vector<Element>> next_parts(const SplitRule& rule) override {
    if (left_ == 0) return std::nullopt;
    --left_;
    return source_->next_parts(rule);
  }
  std::optional<std::vector<Element>> next_stacked(std::int64_t count, const SplitRule& rule) override {
    if (left_ == 0) return std::nullopt;
    const std::int64_t wanted = std::min(count, left_);
    left_ -= wanted;
    return source_->next_stacked(wanted, rule);
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t wanted = std::min(count, left_);
    left_ -= wanted;
    return source_->skip(wanted);
  }

 private:
  std::unique_ptr<ElementIterator<Element>> source_;
  std::int64_t left_;
};

template <class Element>
class TakeNode final : public TransformationNode<Element> {
 public:
  TakeNode(DatasetNodePtr<Element> source, std::int64_t count)
      : TransformationNode<Element>(std::move(source)), count_(count) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return std::make_unique<Taken<Element>>(this->source().iterate(pass), count_);
  }

  [[nodiscard]] Cardinality cardinality() const override {
    const Cardinality all = this->source().cardinality();
    if (all.is_infinite() || count_ == 0) return Cardinality::of(count_);
    return all.is_known() ? Cardinality::of(std::min(all.count(), count_)) : all;
  }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<TakeNode>(std::move(source), count_);
  }

  std::int64_t count_;
};

}  // namespace cohort::detail
