// Elements stacked into batches, and batches taken apart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/dataset_node.h>

namespace cohort::detail {

template <class Element>
class Batches final : public ElementIterator<Element> {
 public:
  Batches(std::unique_ptr<ElementIterator<Element>> source, std::int64_t size, bool drop_remainder)
      : source_(std::move(source)), size_(size), drop_remainder_(drop_remainder) {}

  std::optional<Element> next() override {
    auto parts = next_parts([](std::int64_t rows) { return std::vector<RowRange>{{0, rows}}; });
    if (!parts) return std::nullopt;
    return std::move(parts->front());
  }

  // Only the wanted rows are copied into a batch.
  std::optional<std::vector<Element>> next_parts(const SplitRule& rule) override {
    bool dropped = false;
    auto parts = source_->next_stacked(size_, [&](std::int64_t rows) {
      dropped = drop_remainder_ && rows < size_;
      return dropped ? std::vector<RowRange>{} : rule(rows);
    });
    if (dropped) return std::nullopt;
    return parts;
  }

  std::int64_t skip(std::int64_t count) override {
    // A count that leaves no batch needs no exact number of rows.
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() / size_;
    const std::int64_t rows = source_->skip(std::min(count, most) * size_);
    return rows / size_ + (!drop_remainder_ && rows % size_ != 0 ? 1 : 0);
  }

 private:
  std::unique_ptr<ElementIterator<Element>> source_;
  std::int64_t size_;
  bool drop_remainder_;
};

template <class Element>
class BatchNode final : public TransformationNode<Element> {
 public:
  BatchNode(DatasetNodePtr<Element> source, std::int64_t size, bool drop_remainder)
      : TransformationNode<Element>(std::move(source)), size_(size), drop_remainder_(drop_remainder) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return std::make_unique<Batches<Element>>(this->source().iterate(pass), size_, drop_remainder_);
  }

  [[nodiscard]] Cardinality cardinality() const override {
    const Cardinality elements = this->source().cardinality();
    if (!elements.is_known()) return elements;
    const std::int64_t partial = !drop_remainder_ && elements.count() % size_ != 0 ? 1 : 0;
    return Cardinality::of(elements.count() / size_ + partial);
  }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override {
    return BatchSize{size_, drop_remainder_};
  }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<BatchNode>(std::move(source), size_, drop_remainder_);
  }

  std::int64_t size_;
  bool drop_remainder_;
};

/// The rows of batches, one by one.
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
