// Elements in a random order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <cohort/input/detail/dataset_node.h>

namespace cohort::detail {

/// The buffer of a shuffle: elements that were read and not yet drawn.
template <class T>
class ShuffleBuffer {
 public:
  /// A buffer of `capacity` elements; unset: of all elements.
  ShuffleBuffer(const std::mt19937_64& random, std::optional<std::int64_t> capacity, std::vector<T> held = {})
      : random_(random), capacity_(capacity), held_(std::move(held)) {}

  /// Fills the buffer with what `read()` returns, until it returns nothing, and draws one of the elements in
  /// it.
  template <class Read>
  [[nodiscard]] std::optional<T> draw(const Read& read) {
    while (!source_ended_ && (!capacity_ || static_cast<std::int64_t>(held_.size()) < *capacity_)) {
      std::optional<T> element = read();
      if (element)
        held_.push_back(std::move(*element));
      else
        source_ended_ = true;
    }
    if (held_.empty()) return std::nullopt;
    // Not std::uniform_int_distribution, whose results differ between standard libraries.
    std::swap(held_[static_cast<std::size_t>(random_() % held_.size())], held_.back());
    T drawn = std::move(held_.back());
    held_.pop_back();
    return drawn;
  }

  [[nodiscard]] const std::mt19937_64& random() const { return random_; }
  [[nodiscard]] const std::vector<T>& held() const { return held_; }

 private:
  std::mt19937_64 random_;
  std::optional<std::int64_t> capacity_;
  std::vector<T> held_;
  bool source_ended_ = false;
};

/// Over elements in memory: the buffer holds their indices, and each element drawn is copied once.
template <class Element>
class ShuffledRows final : public ElementIterator<Element> {
 public:
  ShuffledRows(std::shared_ptr<const RandomAccess<Element>> rows, const std::mt19937_64& random,
               std::optional<std::int64_t> capacity)
      : rows_(std::move(rows)), buffer_(random, capacity) {}

  std::optional<Element> next() override {
    const std::optional<std::int64_t> index = draw();
    if (!index) return std::nullopt;
    return rows_->at(*index);
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t skipped = 0;
    while (skipped < count && draw()) ++skipped;
    return skipped;
  }

  std::optional<std::vector<Element>> next_stacked(std::int64_t count, const SplitRule& rule) override {
    std::vector<std::int64_t> drawn;
    while (static_cast<std::int64_t>(drawn.size()) < count) {
      const std::optional<std::int64_t> index = draw();
      if (!index) break;
      drawn.push_back(*index);
    }
    if (drawn.empty()) return std::nullopt;
    std::vector<Element> parts;
    for (const RowRange range : rule(static_cast<std::int64_t>(drawn.size()))) {
      parts.push_back(rows_->stacked(std::span(drawn).subspan(
          static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.end - range.begin))));
    }
    return parts;
  }

 private:
  [[nodiscard]] std::optional<std::int64_t> draw() {
    return buffer_.draw([&]() -> std::optional<std::int64_t> {
      if (read_ == rows_->size()) return std::nullopt;
      return read_++;
    });
  }

  std::shared_ptr<const RandomAccess<Element>> rows_;
  ShuffleBuffer<std::int64_t> buffer_;
  std::int64_t read_ = 0;
};

/// Over elements that come one by one.
template <class Element>
class ShuffledElements final : public ElementIterator<Element> {
 public:
  ShuffledElements(std::unique_ptr<ElementIterator<Element>> source, Cardinality cardinality,
                   const std::mt19937_64& random, std::optional<std::int64_t> capacity)
      : source_(std::move(source)),
        cardinality_(cardinality),
        capacity_(capacity),
        buffer_(random, capacity) {}

  std::optional<Element> next() override {
    started_ = true;
    return buffer_.draw([&] { return source_->next(); });
  }

  std::int64_t skip(std::int64_t count) override {
    if (started_ || cardinality_ == Cardinality::unknown()) return ElementIterator<Element>::skip(count);
    started_ = true;
    return skip_from_start(count);
  }

 private:
  // Draws numbers in place of the elements, and then reads only those that are still in the buffer.
  std::int64_t skip_from_start(std::int64_t count) {
    ShuffleBuffer<std::int64_t> numbers(buffer_.random(), capacity_);
    std::int64_t read = 0;
    const auto read_number = [&]() -> std::optional<std::int64_t> {
      if (cardinality_.is_known() && read == cardinality_.count()) return std::nullopt;
      return read++;
    };
    std::int64_t skipped = 0;
    while (skipped < count && numbers.draw(read_number)) ++skipped;

    std::vector<std::size_t> slots(numbers.held().size());  // in the order of their elements
    std::iota(slots.begin(), slots.end(), 0);
    std::sort(slots.begin(), slots.end(),
              [&](std::size_t a, std::size_t b) { return numbers.held()[a] < numbers.held()[b]; });
    std::vector<std::optional<Element>> held(slots.size());
    std::int64_t at = 0;
    for (const std::size_t slot : slots) {
      source_->skip(numbers.held()[slot] - at);
      at = numbers.held()[slot] + 1;
      held[slot] = source_->next();
      COHORT_CHECK(held[slot].has_value());
    }
    source_->skip(read - at);
    std::vector<Element> elements;
    elements.reserve(held.size());
    for (auto& element : held) elements.push_back(std::move(*element));
    buffer_ = ShuffleBuffer<Element>(numbers.random(), capacity_, std::move(elements));
    return skipped;
  }

  std::unique_ptr<ElementIterator<Element>> source_;
  Cardinality cardinality_;
  std::optional<std::int64_t> capacity_;
  ShuffleBuffer<Element> buffer_;
  bool started_ = false;
};

/// How a dataset is shuffled, from ShuffleOptions.
struct ShuffleRule {
  std::optional<std::int64_t> capacity = {};
  std::uint64_t seed = 0;
  bool reshuffle = true;

  [[nodiscard]] std::mt19937_64 random(const Pass& pass) const {
    const std::uint64_t order = reshuffle ? pass.number() : 0;
    std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                        static_cast<std::uint32_t>(order), static_cast<std::uint32_t>(order >> 32)};
    return std::mt19937_64(words);
  }
};

template <class Element>
class ShuffleNode final : public TransformationNode<Element> {
 public:
  ShuffleNode(DatasetNodePtr<Element> source, const ShuffleRule& rule)
      : TransformationNode<Element>(std::move(source)), rule_(rule) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    if (auto rows = this->source().random_access()) {
      return std::make_unique<ShuffledRows<Element>>(std::move(rows), rule_.random(pass), rule_.capacity);
    }
    return std::make_unique<ShuffledElements<Element>>(this->source().iterate(pass), cardinality(),
                                                       rule_.random(pass), rule_.capacity);
  }

  [[nodiscard]] Cardinality cardinality() const override { return this->source().cardinality(); }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<ShuffleNode>(std::move(source), rule_);
  }

  ShuffleRule rule_;
};

}  // namespace cohort::detail
