// A dataset several times in a row, or for ever.
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
class Repeated final : public ElementIterator<Element> {
 public:
  Repeated(DatasetNodePtr<Element> source, std::optional<std::int64_t> count, const Pass& pass)
      : source_(std::move(source)), once_(source_->cardinality()), pass_(pass) {
    if (!count) return;
    end_ = static_cast<std::uint64_t>(*count);
    rounds_ = end_;
  }

  std::optional<Element> next() override {
    return read([](ElementIterator<Element>& elements) { return elements.next(); });
  }
  std::optional<std::vector<Element>> next_parts(const SplitRule& rule) override {
    return read([&](ElementIterator<Element>& elements) { return elements.next_parts(rule); });
  }

  // A batch within one round is stacked by the source; one that crosses rounds is stacked here.
  std::optional<std::vector<Element>> next_stacked(std::int64_t count, const SplitRule& rule) override {
    if (elements_ && once_ == Cardinality::of(given_)) elements_.reset();
    const bool in_round = once_.is_known() && (elements_ || begin_round()) && once_.count() - given_ >= count;
    if (!in_round) return ElementIterator<Element>::next_stacked(count, rule);
    given_ += count;
    return elements_->next_stacked(count, rule);
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t skipped = 0;
    while (true) {
      if (!elements_) skipped += skip_rounds(count - skipped);
      if (skipped == count || (!elements_ && !begin_round())) return skipped;
      ++given_;  // as in read()
      const std::int64_t in_round = elements_->skip(count - skipped);
      given_ += in_round - 1;
      skipped += in_round;
      if (skipped < count) end_round();
    }
  }

 private:
  template <class Read>
  auto read(const Read& read_from) -> decltype(read_from(std::declval<ElementIterator<Element>&>())) {
    while (elements_ || begin_round()) {
      ++given_;  // even if it fails: an error takes an element's place
      if (auto result = read_from(*elements_)) return result;
      --given_;
      end_round();
    }
    return std::nullopt;
  }

  [[nodiscard]] bool begin_round() {
    if (round_ == end_) return false;
    elements_ = source_->iterate(pass_.nested(round_++, rounds_));
    given_ = 0;
    return true;
  }
  void end_round() {
    if (given_ == 0) round_ = end_;  // an empty dataset, repeated for ever, is empty
    elements_.reset();
  }
  /// Skips whole rounds, if their length is known; returns the number of elements.
  [[nodiscard]] std::int64_t skip_rounds(std::int64_t count) {
    if (!once_.is_known() || once_.count() == 0) return 0;
    const auto wanted = static_cast<std::uint64_t>(count / once_.count());
    const std::uint64_t rounds = std::min(wanted, end_ - round_);
    round_ += rounds;
    return static_cast<std::int64_t>(rounds) * once_.count();
  }

  DatasetNodePtr<Element> source_;
  Cardinality once_;
  Pass pass_;
  std::uint64_t end_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t rounds_ = Pass::kManyRounds;
  std::uint64_t round_ = 0;  // the next to begin
  std::unique_ptr<ElementIterator<Element>> elements_;
  std::int64_t given_ = 0;  // in this round
};

template <class Element>
class RepeatNode final : public TransformationNode<Element> {
 public:
  RepeatNode(DatasetNodePtr<Element> source, std::optional<std::int64_t> count)
      : TransformationNode<Element>(std::move(source)), count_(count) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return std::make_unique<Repeated<Element>>(this->shared_source(), count_, pass);
  }

  [[nodiscard]] Cardinality cardinality() const override {
    const Cardinality once = this->source().cardinality();
    if (count_) return once.times(*count_);
    return once == Cardinality::of(0) ? once : Cardinality::infinite();
  }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override { return this->source().batch_size(); }

 private:
  [[nodiscard]] DatasetNodePtr<Element> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<RepeatNode>(std::move(source), count_);
  }

  std::optional<std::int64_t> count_;
};

}  // namespace cohort::detail
