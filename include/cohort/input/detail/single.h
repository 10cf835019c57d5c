// A dataset of one element.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <cohort/input/detail/source_node.h>

namespace cohort::detail {

template <class Element>
class Single final : public ElementIterator<Element> {
 public:
  explicit Single(Element element) : element_(std::move(element)) {}

  std::optional<Element> next() override { return std::exchange(element_, std::nullopt); }

 private:
  std::optional<Element> element_;
};

template <class Element>
class SingleNode final : public SourceNode<Element> {
 public:
  explicit SingleNode(Element element) : element_(std::move(element)) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& /*pass*/) const override {
    return std::make_unique<Single<Element>>(element_);
  }
  [[nodiscard]] Cardinality cardinality() const override { return Cardinality::of(1); }

 private:
  Element element_;
};

}  // namespace cohort::detail
