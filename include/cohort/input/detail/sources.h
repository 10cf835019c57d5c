// Sources that read no files: elements in memory, numbers, a single element, and what a function makes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/input/detail/dataset_node.h>
#include <cohort/input/element_iterator.h>

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

/// Elements that are in memory, or computed from their index.
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

/// The rows of `tensor` at `indices`, which lie within it, copied into a new tensor.
[[nodiscard]] Tensor gather_rows(const Tensor& tensor, std::span<const std::int64_t> indices);

/// The rows of tensors in memory.
template <class Element>
class TensorRows final : public RandomAccess<Element> {
 public:
  /// @throws InvalidArgument when the tensors of the structure differ in rows.
  explicit TensorRows(Element tensors) : tensors_(std::move(tensors)), rows_(rows_of(tensors_)) {}

  [[nodiscard]] std::int64_t size() const override { return rows_; }
  [[nodiscard]] Element at(std::int64_t index) const override {
    return map_structure([&](const Tensor& tensor) { return tensor.row(index); }, tensors_);
  }
  [[nodiscard]] Element range(std::int64_t begin, std::int64_t end) const override {
    return map_structure([&](const Tensor& tensor) { return tensor.rows(begin, end); }, tensors_);
  }
  [[nodiscard]] Element stacked(std::span<const std::int64_t> indices) const override {
    return map_structure([&](const Tensor& tensor) { return gather_rows(tensor, indices); }, tensors_);
  }

 private:
  Element tensors_;
  std::int64_t rows_;
};

/// Numbers from a start, a step apart, as scalars.
class NumberRange final : public RandomAccess<Tensor> {
 public:
  /// From `start` to before `stop`. @throws InvalidArgument for a step of 0.
  NumberRange(std::int64_t start, std::int64_t stop, std::int64_t step);

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] Tensor at(std::int64_t index) const override { return Tensor::scalar(number(index)); }
  [[nodiscard]] Tensor range(std::int64_t begin, std::int64_t end) const override;
  [[nodiscard]] Tensor stacked(std::span<const std::int64_t> indices) const override;

 private:
  /// Unsigned, because `index * step` alone may be more than the largest signed number.
  [[nodiscard]] std::int64_t number(std::int64_t index) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start_) +
                                     static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(step_));
  }

  std::int64_t start_;
  std::int64_t step_;
  std::int64_t size_;
};

template <class Element>
class Single final : public ElementIterator<Element> {
 public:
  explicit Single(Element element) : element_(std::move(element)) {}

  std::optional<Element> next() override { return std::exchange(element_, std::nullopt); }

 private:
  std::optional<Element> element_;
};

/// A dataset of one element.
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

/// Elements that a function of the program makes.
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
