// The elements of one dataset, and then those of another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/dataset_node.h>

namespace cohort::detail {

template <class Element>
class Concatenated final : public ElementIterator<Element> {
 public:
  Concatenated(std::unique_ptr<ElementIterator<Element>> first, DatasetNodePtr<Element> second,
               const Pass& pass)
      : elements_(std::move(first)), second_(std::move(second)), pass_(pass) {}

  std::optional<Element> next() override {
    auto element = elements_->next();
    if (!element && begin_second()) return elements_->next();
    return element;
  }
  std::optional<std::vector<Element>> next_parts(const SplitRule& rule) override {
    auto parts = elements_->next_parts(rule);
    if (!parts && begin_second()) return elements_->next_parts(rule);
    return parts;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = elements_->skip(count);
    if (skipped < count && begin_second()) return skipped + elements_->skip(count - skipped);
    return skipped;
  }

 private:
  [[nodiscard]] bool begin_second() {
    if (!second_) return false;
    elements_ = second_->iterate(pass_);
    second_.reset();
    return true;
  }

  std::unique_ptr<ElementIterator<Element>> elements_;
  DatasetNodePtr<Element> second_;  // until it has begun
  Pass pass_;
};

template <class Element>
class ConcatenateNode final : public DatasetNode<Element> {
 public:
  ConcatenateNode(DatasetNodePtr<Element> first, DatasetNodePtr<Element> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return std::make_unique<Concatenated<Element>>(first_->iterate(pass), second_, pass);
  }

  [[nodiscard]] Cardinality cardinality() const override {
    return first_->cardinality() + second_->cardinality();
  }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override {
    return BatchSize::common(first_->batch_size(), second_->batch_size());
  }

  /// Dividing the files of one part alone would give its elements another weight.
  [[nodiscard]] DatasetNodePtr<Element> with_files_of(const Shard& shard) const override {
    auto first = first_->with_files_of(shard);
    auto second = second_->with_files_of(shard);
    if (!first || !second) return nullptr;
    return std::make_shared<ConcatenateNode>(std::move(first), std::move(second));
  }
  [[nodiscard]] DatasetNodePtr<Element> with_hints_as(const Shard& shard) const override {
    auto first = first_->with_hints_as(shard);
    auto second = second_->with_hints_as(shard);
    if (!first && !second) return nullptr;
    return std::make_shared<ConcatenateNode>(first ? first : first_, second ? second : second_);
  }

 private:
  DatasetNodePtr<Element> first_;
  DatasetNodePtr<Element> second_;
};

}  // namespace cohort::detail
