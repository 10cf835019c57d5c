// A source whose elements are in memory, or computed from their index.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/source_node.h>

namespace cohort::detail {

template <class Element>
class InOrder final : public ElementIterator<Element> {
 public:
  explicit InOrder(std::shared_ptr<const RandomAccess<Element>> elements) : elements_(std::move(elements)) {}

  std::optional<Element> next() override {
    if (index_ == elements_->size()) return std::nullopt;
    return elements_->at(index_++);
  }

  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = std::min(count, elements_->size() - index_);
    index_ += skipped;
    return skipped;
  }

  // Rows of a tensor that follow each other are a batch already: nothing is copied.
  std::optional<std::vector<Element>> next_stacked(std::int64_t count, const SplitRule& rule) override {
    const std::int64_t begin = index_;
    const std::int64_t taken = skip(count);
    if (taken == 0) return std::nullopt;
    std::vector<Element> parts;
    for (const RowRange part : rule(taken)) {
      parts.push_back(elements_->range(begin + part.begin, begin + part.end));
    }
    return parts;
  }

 private:
  std::shared_ptr<const RandomAccess<Element>> elements_;
  std::int64_t index_ = 0;
};

template <class Element>
class MemorySourceNode final : public SourceNode<Element> {
 public:
  explicit MemorySourceNode(std::shared_ptr<const RandomAccess<Element>> elements)
      : elements_(std::move(elements)) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& /*pass*/) const override {
    return std::make_unique<InOrder<Element>>(elements_);
  }
  [[nodiscard]] Cardinality cardinality() const override { return Cardinality::of(elements_->size()); }
  [[nodiscard]] std::shared_ptr<const RandomAccess<Element>> random_access() const override {
    return elements_;
  }

 private:
  std::shared_ptr<const RandomAccess<Element>> elements_;
};

}  // namespace cohort::detail
