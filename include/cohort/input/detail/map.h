// Each element replaced by one other: the result of a function, which threads may call ahead of the consumer,
// or the element with its number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <cohort/base/event_count.h>
#include <cohort/input/detail/dataset_node.h>

namespace cohort {

struct MapOptions {
  int parallelism = 1;     ///< calls of the function at a time, at most 4096; above 1, on threads of its own
  bool keep_order = true;  ///< otherwise results come as they are done, in any order
};

}  // namespace cohort

namespace cohort::detail {

struct ParallelStageOptions {
  int threads = 1;
  std::size_t slots = 1;   ///< elements in the stage at a time
  bool keep_order = true;  ///< elements are taken in the order of reading, otherwise as they are done
};

/// Threads that work ahead of a consumer. A stage has a few slots. Each holds one element: it is read (one at
/// a time, in order), worked on (many at once), and taken by the consumer. Reading waits for a free slot,
/// which bounds memory.
///
/// The threads live as long as the stage. Its destructor waits for the elements that they are working on.
class ParallelStage {
 public:
  /// Reads the next element into the slot; false at the end. Never called by two threads at once.
  using Read = std::function<bool(std::size_t slot)>;
  /// Works on the element of a slot, on any of the threads.
  using Work = std::function<void(std::size_t slot)>;
  /// Takes a finished element, on the consumer's thread.
  using Take = std::function<void(std::size_t slot)>;

  /// @throws Unavailable when the threads cannot be started.
  ParallelStage(const ParallelStageOptions& options, Read read, Work work);
  ~ParallelStage();
  ParallelStage(const ParallelStage&) = delete;
  ParallelStage& operator=(const ParallelStage&) = delete;

  /// Waits for the next element and calls `take` with its slot; false at the end. Throws what reading or
  /// working on that element threw; the next call continues with the following element.
  [[nodiscard]] bool next(const Take& take);

 private:
  struct Slot {
    bool done = false;
    std::exception_ptr error;
  };

  void serve();
  /// Reads into a free slot and returns it; nothing when there is no more to do.
  [[nodiscard]] std::optional<std::size_t> read_one();
  /// Nothing when no more are needed.
  [[nodiscard]] std::optional<std::size_t> wait_for_free_slot();
  /// The slot of the next element, or in any order of any finished one; nothing when it is not done. `mutex_`
  /// is held.
  [[nodiscard]] std::optional<std::size_t> take_done_slot();
  void stop();

  Read read_;
  Work work_;
  bool keep_order_;

  EventCount slot_is_free_;
  EventCount slot_is_done_;
  std::mutex reading_;  // held while reading, and taken before `mutex_`
  std::mutex mutex_;    // guards what follows
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
  std::deque<std::size_t> pending_;  // not yet taken, in the order of reading
  bool source_ended_ = false;
  bool stopped_ = false;

  std::vector<std::jthread> threads_;  // last: they use all of the above
};

/// Several for each core of any machine; more would be a mistake.
inline constexpr int kMostThreads = 4096;

template <class In, class Out>
using MapFunction = std::shared_ptr<const std::function<Out(In)>>;

/// Results of the function, called on the consumer's thread.
template <class In, class Out>
class Mapped final : public ElementIterator<Out> {
 public:
  Mapped(std::unique_ptr<ElementIterator<In>> source, MapFunction<In, Out> function)
      : source_(std::move(source)), function_(std::move(function)) {}

  std::optional<Out> next() override {
    std::optional<In> element = source_->next();
    if (!element) return std::nullopt;
    return (*function_)(std::move(*element));
  }
  std::int64_t skip(std::int64_t count) override { return source_->skip(count); }

 private:
  std::unique_ptr<ElementIterator<In>> source_;
  MapFunction<In, Out> function_;
};

/// On threads of its own, from the first element on.
template <class In, class Out>
class MappedInParallel final : public ElementIterator<Out> {
 public:
  MappedInParallel(std::unique_ptr<ElementIterator<In>> source, MapFunction<In, Out> function,
                   const MapOptions& options)
      : source_(std::move(source)), function_(std::move(function)), options_(options) {}

  std::optional<Out> next() override {
    if (!stage_) start();
    std::optional<Out> result;
    if (!stage_->next([&](std::size_t slot) { result = std::exchange(outputs_[slot], std::nullopt); }))
      return std::nullopt;
    return result;
  }

  std::int64_t skip(std::int64_t count) override {
    return stage_ ? ElementIterator<Out>::skip(count) : source_->skip(count);
  }

 private:
  void start() {
    const auto slots = static_cast<std::size_t>(options_.parallelism);
    inputs_.resize(slots);
    outputs_.resize(slots);
    const auto read = [this](std::size_t slot) {
      inputs_[slot] = source_->next();
      return inputs_[slot].has_value();
    };
    const auto work = [this](std::size_t slot) {
      std::optional<In> input = std::exchange(inputs_[slot], std::nullopt);
      outputs_[slot] = (*function_)(std::move(*input));
    };
    stage_.emplace(
        ParallelStageOptions{
            .threads = options_.parallelism, .slots = slots, .keep_order = options_.keep_order},
        read, work);
  }

  std::unique_ptr<ElementIterator<In>> source_;
  MapFunction<In, Out> function_;
  MapOptions options_;
  std::vector<std::optional<In>> inputs_;    // by slot
  std::vector<std::optional<Out>> outputs_;  // by slot
  std::optional<ParallelStage> stage_;       // last, because its threads use all of the above
};

template <class In, class Out>
class MapNode final : public TransformationNode<In, Out> {
 public:
  MapNode(DatasetNodePtr<In> source, MapFunction<In, Out> function, const MapOptions& options)
      : TransformationNode<In, Out>(std::move(source)), function_(std::move(function)), options_(options) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Out>> iterate(const Pass& pass) const override {
    auto source = this->source().iterate(pass);
    if (options_.parallelism == 1) return std::make_unique<Mapped<In, Out>>(std::move(source), function_);
    return std::make_unique<MappedInParallel<In, Out>>(std::move(source), function_, options_);
  }
  [[nodiscard]] Cardinality cardinality() const override { return this->source().cardinality(); }

 private:
  [[nodiscard]] DatasetNodePtr<Out> over(DatasetNodePtr<In> source) const override {
    return std::make_shared<MapNode>(std::move(source), function_, options_);
  }

  MapFunction<In, Out> function_;
  MapOptions options_;
};

/// Elements with their numbers.
template <class Element>
class Enumerated final : public ElementIterator<std::pair<std::int64_t, Element>> {
 public:
  Enumerated(std::unique_ptr<ElementIterator<Element>> source, std::int64_t start)
      : source_(std::move(source)), number_(static_cast<std::uint64_t>(start)) {}

  std::optional<std::pair<std::int64_t, Element>> next() override {
    const auto number = static_cast<std::int64_t>(number_++);  // an element that fails has a number, too
    std::optional<Element> element = source_->next();
    if (!element) return std::nullopt;
    return std::pair(number, std::move(*element));
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = source_->skip(count);
    number_ += static_cast<std::uint64_t>(skipped);
    return skipped;
  }

 private:
  std::unique_ptr<ElementIterator<Element>> source_;
  std::uint64_t number_;  // unsigned, since it may pass the largest number
};

template <class Element>
class EnumerateNode final : public TransformationNode<Element, std::pair<std::int64_t, Element>> {
 public:
  using Numbered = std::pair<std::int64_t, Element>;

  EnumerateNode(DatasetNodePtr<Element> source, std::int64_t start)
      : TransformationNode<Element, Numbered>(std::move(source)), start_(start) {}

  [[nodiscard]] std::unique_ptr<ElementIterator<Numbered>> iterate(const Pass& pass) const override {
    return std::make_unique<Enumerated<Element>>(this->source().iterate(pass), start_);
  }
  [[nodiscard]] Cardinality cardinality() const override { return this->source().cardinality(); }

 private:
  [[nodiscard]] DatasetNodePtr<Numbered> over(DatasetNodePtr<Element> source) const override {
    return std::make_shared<EnumerateNode>(std::move(source), start_);
  }

  std::int64_t start_;
};

}  // namespace cohort::detail
