// The nodes of a dataset's pipeline and their iterators. Not part of the interface:
// programs use Dataset.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <cohort/device/tensor_ops.h>
#include <cohort/input/element_iterator.h>

namespace cohort::detail {

template <class Element>
class DatasetNode {
 public:
  virtual ~DatasetNode() = default;
  [[nodiscard]] virtual std::unique_ptr<ElementIterator<Element>> iterate() const = 0;

  /// True when the elements never end.
  [[nodiscard]] virtual bool is_infinite() const { return false; }
};

template <class Element>
using DatasetNodePtr = std::shared_ptr<const DatasetNode<Element>>;

// ---- tensors: one element per row ----

template <class Element>
class TensorRows final : public ElementIterator<Element> {
 public:
  TensorRows(Element tensors, std::int64_t rows) : tensors_(std::move(tensors)), rows_(rows) {}

  std::optional<Element> next() override {
    if (index_ == rows_) return std::nullopt;
    Element row = map_structure([&](const Tensor& tensor) { return tensor.row(index_); }, tensors_);
    ++index_;
    return row;
  }

 private:
  Element tensors_;
  std::int64_t rows_;
  std::int64_t index_ = 0;
};

template <class Element>
class TensorNode final : public DatasetNode<Element> {
 public:
  explicit TensorNode(Element tensors) : tensors_(std::move(tensors)), rows_(rows_of(tensors_)) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate() const override {
    return std::make_unique<TensorRows<Element>>(tensors_, rows_);
  }

 private:
  Element tensors_;
  std::int64_t rows_;
};

// ---- shuffle ----

template <class Element>
class ShuffledElements final : public ElementIterator<Element> {
 public:
  ShuffledElements(std::unique_ptr<ElementIterator<Element>> source, std::seed_seq& seed)
      : source_(std::move(source)), random_(seed) {}

  std::optional<Element> next() override {
    fill_buffer();
    if (buffer_.empty()) return std::nullopt;
    // Not std::uniform_int_distribution, whose results differ between standard libraries.
    const auto chosen = static_cast<std::size_t>(random_() % buffer_.size());
    std::swap(buffer_[chosen], buffer_.back());
    Element element = std::move(buffer_.back());
    buffer_.pop_back();
    return element;
  }

 private:
  // Elements of tensor sources are views, so the buffer holds no copies of the data.
  void fill_buffer() {
    if (!source_) return;
    while (auto element = source_->next()) buffer_.push_back(std::move(*element));
    source_.reset();
  }

  std::unique_ptr<ElementIterator<Element>> source_;
  std::vector<Element> buffer_;
  std::mt19937_64 random_;
};

template <class Element>
class ShuffleNode final : public DatasetNode<Element> {
 public:
  ShuffleNode(DatasetNodePtr<Element> source, std::uint64_t seed, bool reshuffle)
      : source_(std::move(source)), seed_(seed), reshuffle_(reshuffle) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate() const override {
    const std::uint64_t pass = reshuffle_ ? passes_.fetch_add(1) : 0;
    std::seed_seq seed{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32),
                       static_cast<std::uint32_t>(pass), static_cast<std::uint32_t>(pass >> 32)};
    return std::make_unique<ShuffledElements<Element>>(source_->iterate(), seed);
  }

 private:
  DatasetNodePtr<Element> source_;
  std::uint64_t seed_;
  bool reshuffle_;
  mutable std::atomic<std::uint64_t> passes_{0};  // every pass has an order of its own
};

// ---- batch ----

/// `rows[range]` stacked: each tensor gets a new first axis.
template <class Element>
[[nodiscard]] Element stack_rows(const std::vector<Element>& rows, RowRange range) {
  std::vector<std::vector<Tensor>> columns;  // for each tensor of the element: its rows
  for (std::int64_t index = range.begin; index < range.end; ++index) {
    std::size_t column = 0;
    for_each_leaf(
        [&](const Tensor& tensor) {
          if (column == columns.size()) columns.emplace_back();
          columns[column++].push_back(tensor);
        },
        rows[static_cast<std::size_t>(index)]);
  }
  std::size_t column = 0;
  return map_structure(
      [&](const Tensor& like) {
        // An empty part still has the shape and dtype of its rows.
        if (columns.empty()) return stack(std::span<const Tensor>(&like, 1)).rows(0, 0);
        return stack(columns[column++]);
      },
      rows.front());
}

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

  // Only the wanted rows are copied together.
  std::optional<std::vector<Element>> next_parts(const SplitRule& rule) override {
    std::vector<Element> rows;
    while (static_cast<std::int64_t>(rows.size()) < size_) {
      std::optional<Element> row = source_->next();
      if (!row) break;
      rows.push_back(std::move(*row));
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    if (count == 0 || (drop_remainder_ && count < size_)) return std::nullopt;
    std::vector<Element> parts;
    for (const RowRange range : rule(count)) parts.push_back(stack_rows(rows, range));
    return parts;
  }

 private:
  std::unique_ptr<ElementIterator<Element>> source_;
  std::int64_t size_;
  bool drop_remainder_;
};

template <class Element>
class BatchNode final : public DatasetNode<Element> {
 public:
  BatchNode(DatasetNodePtr<Element> source, std::int64_t size, bool drop_remainder)
      : source_(std::move(source)), size_(size), drop_remainder_(drop_remainder) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate() const override {
    return std::make_unique<Batches<Element>>(source_->iterate(), size_, drop_remainder_);
  }

  [[nodiscard]] bool is_infinite() const override { return source_->is_infinite(); }

 private:
  DatasetNodePtr<Element> source_;
  std::int64_t size_;
  bool drop_remainder_;
};

// ---- repeat ----

template <class Element>
class Repeated final : public ElementIterator<Element> {
 public:
  Repeated(DatasetNodePtr<Element> source, std::optional<std::int64_t> count)
      : source_(std::move(source)), left_(count) {}

  std::optional<Element> next() override {
    return read([](ElementIterator<Element>& pass) { return pass.next(); });
  }
  std::optional<std::vector<Element>> next_parts(const SplitRule& rule) override {
    return read([&](ElementIterator<Element>& pass) { return pass.next_parts(rule); });
  }

 private:
  template <class Read>
  auto read(const Read& read_from) -> decltype(read_from(std::declval<ElementIterator<Element>&>())) {
    while (true) {
      if (pass_) {
        if (auto result = read_from(*pass_)) {
          pass_is_empty_ = false;
          return result;
        }
        if (pass_is_empty_) return std::nullopt;  // an empty dataset, repeated for ever, is empty
      }
      if (left_ && (*left_)-- == 0) {
        left_ = 0;
        pass_.reset();
        return std::nullopt;
      }
      pass_ = source_->iterate();
      pass_is_empty_ = true;
    }
  }

  DatasetNodePtr<Element> source_;
  std::optional<std::int64_t> left_;
  std::unique_ptr<ElementIterator<Element>> pass_;
  bool pass_is_empty_ = false;
};

template <class Element>
class RepeatNode final : public DatasetNode<Element> {
 public:
  RepeatNode(DatasetNodePtr<Element> source, std::optional<std::int64_t> count)
      : source_(std::move(source)), count_(count) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate() const override {
    return std::make_unique<Repeated<Element>>(source_, count_);
  }

  [[nodiscard]] bool is_infinite() const override {
    return !count_ || (*count_ > 0 && source_->is_infinite());
  }

 private:
  DatasetNodePtr<Element> source_;
  std::optional<std::int64_t> count_;
};

}  // namespace cohort::detail
