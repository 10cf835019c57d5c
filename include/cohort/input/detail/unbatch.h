// The rows of batches, one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <cohort/input/detail/transformation_node.h>

namespace cohort::detail {

template <class Element>
class Unbatched final : public ElementIterator<Element> {
 public:
  explicit Unbatched(std::unique_ptr<ElementIterator<Element>> source) : source_(std::move(source)) {}

  std::optional<Element> next() override {
    if (!find_row()) return std::nullopt;
    const std::int64_t row = row_++;
    return map_structure([&](const Tensor& tensor) { return tensor.row(row); }, *batch_);
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t skipped = 0;
    while (skipped < count && find_row()) {
      const std::int64_t taken = std::min(count - skipped, rows_ - row_);
      row_ += taken;
      skipped += taken;
    }
    return skipped;
  }

 private:
  /// Reads on until there is a row to return.
  [[nodiscard]] bool find_row() {
    while (row_ == rows_) {
      row_ = rows_ = 0;
      batch_ = source_->next();
      if (!batch_) return false;
      rows_ = rows_of(*batch_);
    }
    return true;
  }

  std::unique_ptr<ElementIterator<Element>> source_;
  std::optional<Element> batch_;
  std::int64_t rows_ = 0;
  std::int64_t row_ = 0;
};

template <class Element>
class UnbatchNode final : public TransformationNode<Element> {
 public:
  using TransformationNode<Element>::TransformationNode;

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return std::make_unique<Unbatched<Element>>(this->source().iterate(pass));
  }

  [[nodiscard]] Cardinality cardinality() const override {
    return this->source().cardinality() == Cardinality::of(0) ? Cardinality::of(0) : Cardinality::unknown();
  }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<UnbatchNode>(std::move(source));
  }
};

}  // namespace cohort::detail
