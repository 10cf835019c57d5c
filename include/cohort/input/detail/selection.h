// Some elements of a dataset: the first ones, all but these, those that a predicate holds for, or every n-th.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/dataset_node.h>

namespace cohort::detail {

template <class Element>
class Taken final : public ElementIterator<Element> {
 public:
  Taken(std::unique_ptr<ElementIterator<Element>> source, std::int64_t count)
      : source_(std::move(source)), left_(count) {}

  std::optional<Element> next() override {
    if (left_ == 0) return std::nullopt;
    --left_;
    return source_->next();
  }
  std::optional<std::vector<Element>> next_parts(const SplitRule& rule) override {
    if (left_ == 0) return std::nullopt;
    --left_;
    return source_->next_parts(rule);
  }
  std::optional<std::vector<Element>> next_stacked(std::int64_t count, const SplitRule& rule) override {
    if (left_ == 0) return std::nullopt;
    const std::int64_t wanted = std::min(count, left_);
    left_ -= wanted;
    return source_->next_stacked(wanted, rule);
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t wanted = std::min(count, left_);
    left_ -= wanted;
    return source_->skip(wanted);
  }

 private:
  std::unique_ptr<ElementIterator<Element>> source_;
  std::int64_t left_;
};

/// The first elements.
template <class Element>
class TakeNode final : public TransformationNode<Element> {
 public:
  TakeNode(DatasetNodePtr<Element> source, std::int64_t count)
      : TransformationNode<Element>(std::move(source)), count_(count) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return std::make_unique<Taken<Element>>(this->source().iterate(pass), count_);
  }

  [[nodiscard]] Cardinality cardinality() const override {
    const Cardinality all = this->source().cardinality();
    if (all.is_infinite() || count_ == 0) return Cardinality::of(count_);
    return all.is_known() ? Cardinality::of(std::min(all.count(), count_)) : all;
  }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<TakeNode>(std::move(source), count_);
  }

  std::int64_t count_;
};

/// All but the first elements.
template <class Element>
class SkipNode final : public TransformationNode<Element> {
 public:
  SkipNode(DatasetNodePtr<Element> source, std::int64_t count)
      : TransformationNode<Element>(std::move(source)), count_(count) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    auto elements = this->source().iterate(pass);
    elements->skip(count_);
    return elements;
  }

  [[nodiscard]] Cardinality cardinality() const override {
    const Cardinality all = this->source().cardinality();
    return all.is_known() ? Cardinality::of(std::max<std::int64_t>(all.count() - count_, 0)) : all;
  }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<SkipNode>(std::move(source), count_);
  }

  std::int64_t count_;
};

template <class Element>
using Predicate = std::shared_ptr<const std::function<bool(const Element&)>>;

template <class Element>
class Filtered final : public ElementIterator<Element> {
 public:
  Filtered(std::unique_ptr<ElementIterator<Element>> source, Predicate<Element> keep)
      : source_(std::move(source)), keep_(std::move(keep)) {}

  std::optional<Element> next() override {
    std::optional<Element> element = source_->next();
    while (element && !(*keep_)(*element)) element = source_->next();
    return element;
  }

 private:
  std::unique_ptr<ElementIterator<Element>> source_;
  Predicate<Element> keep_;
};

/// The elements that a predicate holds for.
template <class Element>
class FilterNode final : public TransformationNode<Element> {
 public:
  FilterNode(DatasetNodePtr<Element> source, Predicate<Element> keep)
      : TransformationNode<Element>(std::move(source)), keep_(std::move(keep)) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return std::make_unique<Filtered<Element>>(this->source().iterate(pass), keep_);
  }

  [[nodiscard]] Cardinality cardinality() const override {
    return this->source().cardinality() == Cardinality::of(0) ? Cardinality::of(0) : Cardinality::unknown();
  }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<FilterNode>(std::move(source), keep_);
  }

  Predicate<Element> keep_;
};

/// What a shard requires of the dataset that is divided.
enum class ShardDemand {
  kNothing,           ///< a part may be empty
  kAnElementForEach,  ///< fewer elements than parts, but not none, are an error in every part
};

/// @throws InvalidArgument unless the count is positive and the index below it.
void check_shard(const Shard& shard);
[[noreturn]] void throw_too_few_elements(std::int64_t found, int required);
[[noreturn]] void throw_unfilled_hint();

template <class Element>
class Sharded final : public ElementIterator<Element> {
 public:
  Sharded(std::unique_ptr<ElementIterator<Element>> source, const Shard& shard, ShardDemand demand)
      : source_(std::move(source)),
        shard_(shard),
        before_next_(shard.index),
        must_count_(demand == ShardDemand::kAnElementForEach) {}

  std::optional<Element> next() override {
    return read([&] { return source_->next(); });
  }
  std::optional<std::vector<Element>> next_parts(const SplitRule& rule) override {
    return read([&] { return source_->next_parts(rule); });
  }

  std::int64_t skip(std::int64_t count) override {
    if (count == 0) return 0;
    if (must_count_) return next() ? 1 + skip(count - 1) : 0;
    const std::int64_t most = (std::numeric_limits<std::int64_t>::max() - before_next_) / shard_.count;
    const std::int64_t wanted = before_next_ + (std::min(count, most) - 1) * shard_.count + 1;
    const std::int64_t passed = source_->skip(wanted);
    if (passed <= before_next_) return 0;
    const std::int64_t skipped = (passed - before_next_ - 1) / shard_.count + 1;
    before_next_ = shard_.count - 1;
    return skipped;
  }

 private:
  template <class Read>
  auto read(const Read& read_one) -> decltype(read_one()) {
    // Set before anything is read: an error takes an element's place.
    const std::int64_t wanted = std::exchange(before_next_, shard_.count - 1);
    const bool must_count = std::exchange(must_count_, false);
    const std::int64_t before = source_->skip(wanted);
    auto element = before == wanted ? read_one() : std::nullopt;
    if (must_count) {
      const std::int64_t mine = element ? 1 : 0;
      const std::int64_t found = before + mine + source_->skip(shard_.count - before - mine);
      before_next_ = shard_.index;  // the whole first round has been passed
      if (found > 0 && found < shard_.count) throw_too_few_elements(found, shard_.count);
    }
    return element;
  }

  std::unique_ptr<ElementIterator<Element>> source_;
  Shard shard_;
  std::int64_t before_next_;  // elements of others before this shard's next one
  bool must_count_;
};

/// Every `count`-th element, from the `index`-th on: one worker's part.
template <class Element>
class ShardNode final : public TransformationNode<Element> {
 public:
  ShardNode(DatasetNodePtr<Element> source, const Shard& shard, ShardDemand demand = ShardDemand::kNothing)
      : TransformationNode<Element>(std::move(source)), shard_(shard), demand_(demand) {
    if (!is_hint()) check_shard(shard);
  }

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    if (is_hint()) throw_unfilled_hint();
    return std::make_unique<Sharded<Element>>(this->source().iterate(pass), shard_, demand_);
  }

  [[nodiscard]] Cardinality cardinality() const override {
    const Cardinality all = this->source().cardinality();
    if (!all.is_known() || is_hint()) return all.is_infinite() ? all : Cardinality::unknown();
    return Cardinality::of(all.count() / shard_.count + (shard_.index < all.count() % shard_.count ? 1 : 0));
  }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

  [[nodiscard]] DatasetNodePtr<Element> with_hints_as(const Shard& shard) const override {
    auto source = this->source().with_hints_as(shard);
    if (!is_hint()) return source ? over(std::move(source)) : nullptr;
    return std::make_shared<ShardNode>(source ? std::move(source) : this->shared_source(), shard,
                                       ShardDemand::kAnElementForEach);
  }

 private:
  [[nodiscard]] bool is_hint() const { return shard_ == Shard::hint(); }
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<ShardNode>(std::move(source), shard_, demand_);
  }

  Shard shard_;
  ShardDemand demand_;
};

}  // namespace cohort::detail
