// Every `count`-th element of a dataset, from the `index`-th on: one worker's part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/transformation_node.h>

namespace cohort::detail {

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
