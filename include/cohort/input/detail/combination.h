// Several datasets made into one: one after the other, side by side, or in turn.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <cohort/input/detail/dataset_node.h>
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

template <class Element>
class Concatenated final : public ElementIterator<Element> {
 public:
  Concatenated(std::unique_ptr<ElementIterator<Element>> first, DatasetNodePtr<Element> second,
               const Pass& pass)
      : elements_(std::move(first)), second_(std::move(second)), pass_(pass) {}

  std::optional<Element> next() override {
    auto element = elements_->next();
    if (!element && begin_second()) return elements_->next();
    return element;
  }
  std::optional<std::vector<Element>> next_parts(const SplitRule& rule) override {
    auto parts = elements_->next_parts(rule);
    if (!parts && begin_second()) return elements_->next_parts(rule);
    return parts;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = elements_->skip(count);
    if (skipped < count && begin_second()) return skipped + elements_->skip(count - skipped);
    return skipped;
  }

 private:
  [[nodiscard]] bool begin_second() {
    if (!second_) return false;
    elements_ = second_->iterate(pass_);
    second_.reset();
    return true;
  }

  std::unique_ptr<ElementIterator<Element>> elements_;
  DatasetNodePtr<Element> second_;  // until it has begun
  Pass pass_;
};

/// The elements of one dataset, and then those of another.
template <class Element>
class ConcatenateNode final : public DatasetNode<Element> {
 public:
  ConcatenateNode(DatasetNodePtr<Element> first, DatasetNodePtr<Element> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return std::make_unique<Concatenated<Element>>(first_->iterate(pass), second_, pass);
  }

  [[nodiscard]] Cardinality cardinality() const override {
    return first_->cardinality() + second_->cardinality();
  }
  [[nodiscard]] std::optional<BatchSize> batch_size() const override {
    return BatchSize::common(first_->batch_size(), second_->batch_size());
  }

  /// Dividing the files of one part alone would give its elements another weight.
  [[nodiscard]] DatasetNodePtr<Element> with_files_of(const Shard& shard) const override {
    auto first = first_->with_files_of(shard);
    auto second = second_->with_files_of(shard);
    if (!first || !second) return nullptr;
    return std::make_shared<ConcatenateNode>(std::move(first), std::move(second));
  }
  [[nodiscard]] DatasetNodePtr<Element> with_hints_as(const Shard& shard) const override {
    auto first = first_->with_hints_as(shard);
    auto second = second_->with_hints_as(shard);
    if (!first && !second) return nullptr;
    return std::make_shared<ConcatenateNode>(first ? first : first_, second ? second : second_);
  }

 private:
  DatasetNodePtr<Element> first_;
  DatasetNodePtr<Element> second_;
};

template <class... Elements>
class Zipped final : public ElementIterator<std::tuple<Elements...>> {
 public:
  explicit Zipped(std::unique_ptr<ElementIterator<Elements>>... sources) : sources_(std::move(sources)...) {}

  // If one source fails, the others are read all the same, so that elements that belong together stay
  // together.
  std::optional<std::tuple<Elements...>> next() override {
    if (ended_) return std::nullopt;
    std::exception_ptr error;
    const auto read = [&]<class Element>(ElementIterator<Element>& source) {
      std::optional<Element> element;
      try {
        element = source.next();
        if (!element) ended_ = true;
      } catch (...) {
        error = std::current_exception();
      }
      return element;
    };
    auto row = std::apply(
        [&](auto&... sources) { return std::tuple<std::optional<Elements>...>{read(*sources)...}; },
        sources_);
    if (ended_) return std::nullopt;
    if (error) std::rethrow_exception(error);
    return std::apply([](auto&... elements) { return std::tuple<Elements...>{std::move(*elements)...}; },
                      row);
  }

  std::int64_t skip(std::int64_t count) override {
    if (ended_) return 0;
    std::int64_t skipped = count;
    const auto skip_in = [&](auto& source) { skipped = std::min(skipped, source.skip(skipped)); };
    std::apply([&](auto&... sources) { (skip_in(*sources), ...); }, sources_);
    ended_ = skipped < count;
    return skipped;
  }

 private:
  std::tuple<std::unique_ptr<ElementIterator<Elements>>...> sources_;
  bool ended_ = false;
};

/// Elements of several datasets side by side, until the shortest ends.
template <class... Elements>
class ZipNode final : public DatasetNode<std::tuple<Elements...>> {
 public:
  using Element = std::tuple<Elements...>;

  explicit ZipNode(DatasetNodePtr<Elements>... sources) : sources_(std::move(sources)...) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate(const Pass& pass) const override {
    return for_sources([&](const auto&... sources) {
      return std::make_unique<Zipped<Elements...>>(sources->iterate(pass)...);
    });
  }

  [[nodiscard]] Cardinality cardinality() const override {
    Cardinality shortest = Cardinality::infinite();
    for_sources([&](const auto&... sources) {
      ((shortest = Cardinality::shorter(shortest, sources->cardinality())), ...);
    });
    return shortest;
  }

  [[nodiscard]] std::optional<BatchSize> batch_size() const override {
    return for_sources([](const auto& first, const auto&... others) {
      std::optional<BatchSize> size = first->batch_size();
      ((size = BatchSize::common(size, others->batch_size())), ...);
      return size;
    });
  }

  /// Elements that belong together must be divided alike, which needs a list of files in every source.
  [[nodiscard]] DatasetNodePtr<Element> with_files_of(const Shard& shard) const override {
    return for_sources([&](const auto&... sources) -> DatasetNodePtr<Element> {
      std::tuple<DatasetNodePtr<Elements>...> parts{sources->with_files_of(shard)...};
      return std::apply(
          [](auto&... part) -> DatasetNodePtr<Element> {
            if (!(part && ...)) return nullptr;
            return std::make_shared<ZipNode>(std::move(part)...);
          },
          parts);
    });
  }
  [[nodiscard]] DatasetNodePtr<Element> with_hints_as(const Shard& shard) const override {
    return for_sources([&](const auto&... sources) -> DatasetNodePtr<Element> {
      bool any = false;
      const auto replaced = [&](const auto& source) {
        auto part = source->with_hints_as(shard);
        if (!part) return source;
        any = true;
        return part;
      };
      auto node = std::make_shared<ZipNode>(replaced(sources)...);
      return any ? node : nullptr;
    });
  }

 private:
  template <class Function>
  auto for_sources(const Function& function) const {
    return std::apply(function, sources_);
  }

  std::tuple<DatasetNodePtr<Elements>...> sources_;
};

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

/// Elements of many datasets in turn, one dataset per element of the source: lines of several files, for
/// example. The order is the same with threads and without.
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
