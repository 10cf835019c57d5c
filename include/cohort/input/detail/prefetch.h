// Elements read ahead by a thread of the iterator's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/read_ahead.h>
#include <cohort/input/detail/transformation_node.h>

namespace cohort::detail {

/// More would be a mistake: a number of bytes, or one that stands for `all`.
inline constexpr std::int64_t kMostElementsAhead = std::int64_t{1} << 20;

template <class Element>
class Prefetched final : public ElementIterator<Element> {
 public:
  /// Holds up to `elements` elements of `source`. Reading begins when the first one is asked for.
  Prefetched(std::unique_ptr<ElementIterator<Element>> source, std::int64_t elements)
      : source_(std::move(source)), buffer_(static_cast<std::size_t>(elements)) {}

  std::optional<Element> next() override {
    if (!reader_) start();
    std::optional<Element> element;
    if (!reader_->next([&](std::size_t slot) { element = std::exchange(buffer_[slot], std::nullopt); }))
      return std::nullopt;
    return element;
  }

  std::int64_t skip(std::int64_t count) override {
    return reader_ ? ElementIterator<Element>::skip(count) : source_->skip(count);
  }

 private:
  void start() {
    reader_.emplace(buffer_.size(), [this](std::size_t slot) {
      buffer_[slot] = source_->next();
      return buffer_[slot].has_value();
    });
  }

  std::unique_ptr<ElementIterator<Element>> source_;
  std::vector<std::optional<Element>> buffer_;  // by slot
  std::optional<ReadAhead> reader_;             // last, because its thread uses all of the above
};

template <class Element>
class PrefetchNode final : public TransformationNode<Element> {
 public:
  PrefetchNode(DatasetNodePtr<Element> source, std::int64_t elements)
      : TransformationNode<Element>(std::move(source)), elements_(elements) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return std::make_unique<Prefetched<Element>>(this->source().iterate(pass), elements_);
  }
  [[nodiscard]] Cardinality cardinality() const override { return this->source().cardinality(); }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<PrefetchNode>(std::move(source), elements_);
  }

  std::int64_t elements_;
};

}  // namespace cohort::detail
