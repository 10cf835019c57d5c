// Elements with their numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <cohort/input/detail/transformation_node.h>

namespace cohort::detail {

template <class Element>
class Enumerated final : public ElementIterator<std::pair<std::int64_t, Element>> {
 public:
  Enumerated(std::unique_ptr<ElementIterator<Element>> source, std::int64_t start)
      : source_(std::move(source)), number_(static_cast<std::uint64_t>(start)) {}

  std::optional<std::pair<std::int64_t, Element>> next() override {
    const auto number = static_cast<std::int64_t>(number_++);  // an element that fails has a number, too
    std::optional<Element> element = source_->next();
    if (!element) return std::nullopt;
    return std::pair(number, std::move(*element));
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = source_->skip(count);
    number_ += static_cast<std::uint64_t>(skipped);
    return skipped;
  }

 private:
  std::unique_ptr<ElementIterator<Element>> source_;
  std::uint64_t number_;  // unsigned, since it may pass the largest number
};

template <class Element>
class EnumerateNode final : public TransformationNode<Element, std::pair<std::int64_t, Element>> {
 public:
  using Numbered = std::pair<std::int64_t, Element>;

  EnumerateNode(DatasetNodePtr<Element> source, std::int64_t start)
      : TransformationNode<Element, Numbered>(std::move(source)), start_(start) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Numbered>> iterate(const Pass& pass) const override {
    return std::make_unique<Enumerated<Element>>(this->source().iterate(pass), start_);
  }
  [[nodiscard]] Cardinality cardinality() const override { return this->source().cardinality(); }

 private:
  [[nodiscard]] DatasetNodePtr<Numbered> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<EnumerateNode>(std::move(source), start_);
  }

  std::int64_t start_;
};

}  // namespace cohort::detail
