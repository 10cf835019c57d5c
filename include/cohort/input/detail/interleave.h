// Elements of many datasets in turn, one dataset per element of the source: lines of several files, for
// example. The order is the same with threads and without.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/prefetch.h>

namespace cohort {

struct InterleaveOptions {
  std::int64_t cycle_length = 1;  ///< datasets that are open at a time; 1 reads them one after the other
  std::int64_t block_length = 1;  ///< elements taken from one before it is the next one's turn
  /// Elements read ahead of each open dataset, by a thread for each; 0 reads on the consumer's thread.
  std::int64_t read_ahead = 0;
};

}  // namespace cohort

namespace cohort::detail {

template <class In, class Out>
using OpenFunction = std::shared_ptr<const std::function<DatasetNodePtr<Out>(In)>>;

template <class In, class Out>
class Interleaved final : public ElementIterator<Out> {
 public:
  Interleaved(std::unique_ptr<ElementIterator<In>> source, OpenFunction<In, Out> open,
              const InterleaveOptions& options, const Pass& pass)
      : source_(std::move(source)),
        open_(std::move(open)),
        options_(options),
        pass_(pass),
        cycle_(static_cast<std::size_t>(options.cycle_length)) {}

  std::optional<Out> next() override {
    while (find_open()) {
      ++taken_;  // even if it fails: an error takes an element's place
      std::optional<Out> element = cycle_[turn_]->next();
      if (element) return element;
      close();
    }
    return std::nullopt;
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t skipped = 0;
    while (skipped < count && find_open()) {
      const std::int64_t wanted = std::min(count - skipped, options_.block_length - taken_);
      ++taken_;  // as in next()
      const std::int64_t passed = cycle_[turn_]->skip(wanted);
      skipped += passed;
      taken_ += passed - 1;
      if (passed < wanted) close();
    }
    return skipped;
  }

 private:
  /// Moves on to a dataset that is open, or can be opened, in this turn or a later one; false when
  /// there is none left.
  [[nodiscard]] bool find_open() {
    if (taken_ == options_.block_length) next_turn();
    for (std::size_t turns = 0; turns < cycle_.size(); ++turns) {
      if (cycle_[turn_] || open_next()) return true;
      next_turn();
    }
    return false;
  }

  /// Opens the next dataset, in the current place of the cycle.
  [[nodiscard]] bool open_next() {
    if (source_ended_) return false;
    std::optional<In> input = source_->next();
    if (!input) {
      source_ended_ = true;
      return false;
    }
    const std::uint64_t number = opened_++;
    cycle_[turn_] = (*open_)(std::move(*input))->iterate(pass_.nested(number));
    if (options_.read_ahead > 0) {
      cycle_[turn_] = std::make_unique<Prefetched<Out>>(std::move(cycle_[turn_]), options_.read_ahead);
    }
    return true;
  }

  void close() {
    cycle_[turn_].reset();
    next_turn();
  }
  void next_turn() {
    turn_ = (turn_ + 1) % cycle_.size();
    taken_ = 0;
  }

  std::unique_ptr<ElementIterator<In>> source_;
  OpenFunction<In, Out> open_;
  InterleaveOptions options_;
  Pass pass_;
  std::vector<std::unique_ptr<ElementIterator<Out>>> cycle_;  // null where a dataset is to be opened
  std::size_t turn_ = 0;
  std::int64_t taken_ = 0;  // from the dataset whose turn it is
  std::uint64_t opened_ = 0;
  bool source_ended_ = false;
};

template <class In, class Out>
class InterleaveNode final : public TransformationNode<In, Out> {
 public:
  InterleaveNode(DatasetNodePtr<In> source, OpenFunction<In, Out> open, const InterleaveOptions& options)
      : TransformationNode<In, Out>(std::move(source)), open_(std::move(open)), options_(options) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Out>> iterate(const Pass& pass) const override {
    return std::make_unique<Interleaved<In, Out>>(this->source().iterate(pass), open_, options_, pass);
  }

  [[nodiscard]] Cardinality cardinality() const override {
    return this->source().cardinality() == Cardinality::of(0) ? Cardinality::of(0) : Cardinality::unknown();
  }

 private:
  [[nodiscard]] DatasetNodePtr<Out> over(DatasetNodePtr<In> source) const override {
    return std::make_shared<InterleaveNode>(std::move(source), open_, options_);
  }

  OpenFunction<In, Out> open_;
  InterleaveOptions options_;
};

}  // namespace cohort::detail
