// Elements that a function of the program makes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <cohort/input/detail/source_node.h>

namespace cohort::detail {

/// Returns the elements of one pass, one per call, and then nothing.
template <class Element>
using Generator = std::function<std::optional<Element>()>;

template <class Element>
class Generated final : public ElementIterator<Element> {
 public:
  explicit Generated(Generator<Element> generator) : generator_(std::move(generator)) {}

  // A generator that has ended is not called again.
  std::optional<Element> next() override {
    if (!generator_) return std::nullopt;
    std::optional<Element> element = generator_();
    if (!element) generator_ = nullptr;
    return element;
  }

 private:
  Generator<Element> generator_;
};

template <class Element>
class GeneratorNode final : public SourceNode<Element> {
 public:
  explicit GeneratorNode(std::function<Generator<Element>()> begin) : begin_(std::move(begin)) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& /*pass*/) const override {
    return std::make_unique<Generated<Element>>(begin_());
  }
  [[nodiscard]] Cardinality cardinality() const override { return Cardinality::unknown(); }

 private:
  std::function<Generator<Element>()> begin_;
};

}  // namespace cohort::detail
