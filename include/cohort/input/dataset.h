// A Dataset describes where elements come from and how they are transformed; iterating
// it reads them, from the start each time. It is a value: transformations return new
// datasets that share their source. Elements are tensors and structures of them, but also
// strings or other values, as long as they are only mapped.
//
//     auto digits = Dataset<Batch>::from_tensor_slices({images, labels}).shuffle({.seed = 7}).batch(64);
//     for (const Batch& batch : digits) { ... }
//
// The same dataset gives the same elements in the same order on every worker, whatever the
// parallelism, provided that every worker iterates it equally often: each pass is shuffled anew.
// For that, and for positions, functions given to transformations must be pure: the result
// depends on the argument alone. Tensors of elements may be views of the source: do not write to them.
//
// An error from a function or a source is thrown in place of its element; the next call continues with the
// following element. One iterator is used by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/base/input_wait.h>
#include <cohort/input/detail/batch.h>
#include <cohort/input/detail/cache.h>
#include <cohort/input/detail/combination.h>
#include <cohort/input/detail/file_source.h>
#include <cohort/input/detail/map.h>
#include <cohort/input/detail/prefetch.h>
#include <cohort/input/detail/repeat.h>
#include <cohort/input/detail/selection.h>
#include <cohort/input/detail/shuffle.h>
#include <cohort/input/detail/sources.h>
#include <cohort/input/element_iterator.h>

namespace cohort {

struct ShuffleOptions {
  /// The number of elements from which the next one is drawn; unset: the whole dataset.
  std::optional<std::int64_t> buffer = {};
  std::uint64_t seed = 0;
  bool reshuffle_each_iteration = true;  ///< another order in each pass; otherwise always the same
};

template <class Element>
class Dataset {
 public:
  class Iterator;
  using value_type = Element;

  // ---- sources ----

  /// One element per row of the tensors, which all have the same number of rows. No copy.
  /// @throws InvalidArgument when they differ in rows.
  [[nodiscard]] static Dataset from_tensor_slices(Element tensors);

  /// One element: this one.
  [[nodiscard]] static Dataset from_tensors(Element element);

  /// Scalars of int64: `start`, `start + step`, ..., before `stop`. @throws InvalidArgument for a step of 0.
  [[nodiscard]] static Dataset range(std::int64_t start, std::int64_t stop,
                                     std::int64_t step = 1) requires std::is_same_v<Element, Tensor>;
  /// 0 to `stop - 1`.
  [[nodiscard]] static Dataset range(std::int64_t stop) requires std::is_same_v<Element, Tensor> {
    return range(0, stop);
  }

  /// The elements that a function makes: each pass calls `begin()`, and then the function that it returned
  /// for one `std::optional<Element>` after the other, until one is empty.
  template <class Begin>
  [[nodiscard]] static Dataset from_generator(Begin begin);

  /// The paths of the files that are named, or match a shell pattern, sorted and each once; listed now, not
  /// in each pass. Under AutoShardPolicy::kFile, workers divide this list.
  /// @throws Unavailable naming a pattern that nothing matches.
  [[nodiscard]] static Dataset list_files(
      const std::vector<std::string>& patterns) requires std::is_same_v<Element, std::string>;
  [[nodiscard]] static Dataset list_files(
      const std::string& pattern) requires std::is_same_v<Element, std::string> {
    return list_files(std::vector{pattern});
  }

  // ---- transformations, element by element ----

  /// `function(element)` for each element; its result, a tensor or any other value, is the new element.
  /// With parallelism n, n calls run at a time on threads of the iterator, and n elements are held.
  /// @throws InvalidArgument for a parallelism below 1.
  template <class Function>
  [[nodiscard]] auto map(Function function, const MapOptions& options = {}) const;

  /// The elements for which `keep(element)` is true.
  template <class Keep>
  [[nodiscard]] Dataset filter(Keep keep) const;

  /// Pairs of a number, which counts from `start`, and the element.
  [[nodiscard]] Dataset<std::pair<std::int64_t, Element>> enumerate(std::int64_t start = 0) const;

  // ---- which elements, and in which order ----

  /// The elements in a random order, as far as the buffer allows.
  /// @throws InvalidArgument for a buffer below 1, or no buffer for a dataset that never ends.
  [[nodiscard]] Dataset shuffle(const ShuffleOptions& options = {}) const;

  /// The dataset `count` times in a row; without a count, for ever.
  /// @throws InvalidArgument for a negative count.
  [[nodiscard]] Dataset repeat(std::optional<std::int64_t> count = std::nullopt) const;

  /// At most the first `count` elements. @throws InvalidArgument for a negative count.
  [[nodiscard]] Dataset take(std::int64_t count) const;

  /// All but the first `count` elements. @throws InvalidArgument for a negative count.
  [[nodiscard]] Dataset skip(std::int64_t count) const;

  /// Every `count`-th element, from the `index`-th on; `Shard::hint()` leaves both numbers to the strategy.
  /// @throws InvalidArgument for a count below 1 or an index outside; WrongContext, when iterated, for
  /// a hint that no strategy filled in.
  [[nodiscard]] Dataset shard(const Shard& shard) const;

  /// These elements, and then those of `other`.
  [[nodiscard]] Dataset concatenate(const Dataset& other) const;

  /// The elements of the datasets that `open(element)` returns, several of them in turn.
  /// @throws InvalidArgument for a cycle or block below 1, a negative `read_ahead`, or a cycle or
  /// `read_ahead` of more than 2^20.
  template <class Open>
  [[nodiscard]] auto interleave(Open open, const InterleaveOptions& options = {}) const;

  // ---- batches ----

  /// `size` elements stacked into one, along a new first axis. The last batch may be smaller.
  /// @throws InvalidArgument for a size below 1; when iterated, for elements of different shapes.
  [[nodiscard]] Dataset batch(std::int64_t size, bool drop_remainder = false) const;

  /// The rows of each element, one by one. @throws InvalidArgument, when iterated, for scalars.
  [[nodiscard]] Dataset unbatch() const;

  // ---- caching and reading ahead ----

  /// Keeps the elements of the first complete pass in memory, where later passes read them. Every pass has
  /// the order of the source's first one, so shuffle after the cache.
  [[nodiscard]] Dataset cache() const;

  /// The same in the file `path`, which outlives the program. It appears when a pass has reached the end, and
  /// must be removed by hand when the source changes. @throws Unavailable or DataLoss, when iterated, naming
  /// the file when it cannot be written, or is not a complete cache of such elements.
  [[nodiscard]] Dataset cache(std::string path) const;

  /// Up to `elements` elements are read ahead by a thread of the iterator, unless that turns out to save less
  /// than handing over an element costs (20 us), because source or consumer is quick: then they are read on
  /// demand.
  /// @throws InvalidArgument for fewer than 1, or more than 2^20, since all of them lie in memory.
  [[nodiscard]] Dataset prefetch(std::int64_t elements) const;

  // ---- iteration ----

  [[nodiscard]] Cardinality cardinality() const { return node_->cardinality(); }

  /// A new pass over the elements: the dataset's first, second, and so on.
  [[nodiscard]] Iterator begin() const { return begin_at({.pass = passes_->fetch_add(1)}); }
  /// A pass from the position that `Iterator::position()` of the same pipeline gave, in this process or
  /// another: the same remaining elements. Later passes have the following numbers. The cost of getting there
  /// depends on the stages: see docs/input.md. @throws InvalidArgument for a negative number of elements.
  [[nodiscard]] Iterator begin_at(const DatasetPosition& position) const;
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

  /// The stages, for transformations and strategies.
  explicit Dataset(detail::DatasetNodePtr<Element> node) : node_(std::move(node)) {}
  [[nodiscard]] const detail::DatasetNodePtr<Element>& node() const& { return node_; }
  [[nodiscard]] detail::DatasetNodePtr<Element> node() && { return std::move(node_); }

 private:
  /// This dataset with another stage after it.
  template <class Node, class... Args>
  [[nodiscard]] Dataset with(Args&&... args) const {
    return Dataset(std::make_shared<Node>(node_, std::forward<Args>(args)...));
  }

  detail::DatasetNodePtr<Element> node_;
  std::shared_ptr<std::atomic<std::uint64_t>> passes_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// Tuples of one element of each dataset, until the shortest ends.
template <class... Elements>
[[nodiscard]] Dataset<std::tuple<Elements...>> zip(const Dataset<Elements>&... datasets) {
  static_assert(sizeof...(Elements) > 0, "zip() needs at least one dataset");
  return Dataset<std::tuple<Elements...>>(std::make_shared<detail::ZipNode<Elements...>>(datasets.node()...));
}

/// One pass over a dataset, for range-for.
template <class Element>
class Dataset<Element>::Iterator {
 public:
  using value_type = Element;
  using difference_type = std::ptrdiff_t;

  Iterator(std::unique_ptr<ElementIterator<Element>> elements, const DatasetPosition& position)
      : elements_(std::move(elements)), position_(position), current_(wait_for_next()) {}

  const Element& operator*() const& { return *current_; }
  Element operator*() && { return std::move(*current_); }
  /// When this throws, there is no current element; the next increment goes on to the following one.
  Iterator& operator++() {
    current_.reset();
    ++position_.elements;
    current_ = wait_for_next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& iterator, std::default_sentinel_t) { return !iterator.current_; }

  /// Where this iterator stands: a pass that begins there starts with the current element.
  [[nodiscard]] DatasetPosition position() const { return position_; }

 private:
  std::optional<Element> wait_for_next() {
    const InputWait wait;
    return elements_->next();
  }

  std::unique_ptr<ElementIterator<Element>> elements_;
  DatasetPosition position_;
  std::optional<Element> current_;
};

// ---- implementation of the templates ----

template <class Element>
Dataset<Element> Dataset<Element>::from_tensor_slices(Element tensors) {
  static_assert(detail::TensorStructure<Element>,
                "only tensors and structures of tensors have rows; COHORT_FIELDS(Type, fields...) makes a "
                "structure of an aggregate");
  if constexpr (detail::TensorStructure<Element>) {
    return Dataset(std::make_shared<detail::MemorySourceNode<Element>>(
        std::make_shared<const detail::TensorRows<Element>>(std::move(tensors))));
  }
}

template <class Element>
Dataset<Element> Dataset<Element>::from_tensors(Element element) {
  return Dataset(std::make_shared<detail::SingleNode<Element>>(std::move(element)));
}

template <class Element>
Dataset<Element> Dataset<Element>::range(std::int64_t start, std::int64_t stop,
                                         std::int64_t step) requires std::is_same_v<Element, Tensor> {
  return Dataset(std::make_shared<detail::MemorySourceNode<Tensor>>(
      std::make_shared<const detail::NumberRange>(start, stop, step)));
}

template <class Element>
template <class Begin>
Dataset<Element> Dataset<Element>::from_generator(Begin begin) {
  constexpr bool kMakesGenerator = std::is_invocable_r_v<detail::Generator<Element>, Begin&>;
  static_assert(
      kMakesGenerator,
      "the function of from_generator() returns a function, which returns a std::optional<Element>");
  if constexpr (kMakesGenerator)
    return Dataset(std::make_shared<detail::GeneratorNode<Element>>(std::move(begin)));
}

template <class Element>
Dataset<Element> Dataset<Element>::list_files(
    const std::vector<std::string>& patterns) requires std::is_same_v<Element, std::string> {
  return Dataset(std::make_shared<detail::FileListNode>(detail::matching_files(patterns)));
}

template <class Element>
template <class Function>
auto Dataset<Element>::map(Function function, const MapOptions& options) const {
  constexpr bool kTakesElement = std::is_invocable_v<Function&, Element>;
  static_assert(kTakesElement, "the function of map() takes one element; a pair or a tuple is one");
  if constexpr (kTakesElement) {
    using Result = std::decay_t<std::invoke_result_t<Function&, Element>>;
    if (options.parallelism < 1)
      throw InvalidArgument("map(): parallelism must be at least 1, not {}", options.parallelism);
    if (options.parallelism > detail::kMostThreads) {
      throw InvalidArgument("map(): parallelism must be at most {}, not {}", detail::kMostThreads,
                            options.parallelism);
    }
    return Dataset<Result>(std::make_shared<detail::MapNode<Element, Result>>(
        node_, std::make_shared<const std::function<Result(Element)>>(std::move(function)), options));
  }
}

template <class Element>
template <class Keep>
Dataset<Element> Dataset<Element>::filter(Keep keep) const {
  constexpr bool kTakesElement = std::is_invocable_r_v<bool, Keep&, const Element&>;
  static_assert(kTakesElement, "the function of filter() takes one const Element& and returns a bool");
  if constexpr (kTakesElement) {
    return with<detail::FilterNode<Element>>(
        std::make_shared<const std::function<bool(const Element&)>>(std::move(keep)));
  }
}

template <class Element>
Dataset<std::pair<std::int64_t, Element>> Dataset<Element>::enumerate(std::int64_t start) const {
  return Dataset<std::pair<std::int64_t, Element>>(
      std::make_shared<detail::EnumerateNode<Element>>(node_, start));
}

template <class Element>
Dataset<Element> Dataset<Element>::shuffle(const ShuffleOptions& options) const {
  if (options.buffer && *options.buffer < 1)
    throw InvalidArgument("shuffle(): the buffer must hold at least 1 element, not {}", *options.buffer);
  if (!options.buffer && node_->cardinality().is_infinite()) {
    throw InvalidArgument(
        "a dataset that is repeated for ever cannot be shuffled as a whole; "
        "shuffle before repeat, or give a buffer");
  }
  return with<detail::ShuffleNode<Element>>(detail::ShuffleRule{
      .capacity = options.buffer, .seed = options.seed, .reshuffle = options.reshuffle_each_iteration});
}

template <class Element>
Dataset<Element> Dataset<Element>::repeat(std::optional<std::int64_t> count) const {
  if (count && *count < 0) {
    throw InvalidArgument("repeat({}): the count must not be negative; leave it out to repeat for ever",
                          *count);
  }
  return with<detail::RepeatNode<Element>>(count);
}

template <class Element>
Dataset<Element> Dataset<Element>::take(std::int64_t count) const {
  if (count < 0) {
    throw InvalidArgument("take({}): the count must not be negative; leave take() out to get all elements",
                          count);
  }
  return with<detail::TakeNode<Element>>(count);
}

template <class Element>
Dataset<Element> Dataset<Element>::skip(std::int64_t count) const {
  if (count < 0) throw InvalidArgument("skip({}): the count must not be negative", count);
  return with<detail::SkipNode<Element>>(count);
}

template <class Element>
Dataset<Element> Dataset<Element>::shard(const Shard& shard) const {
  return with<detail::ShardNode<Element>>(shard);
}

template <class Element>
Dataset<Element> Dataset<Element>::concatenate(const Dataset& other) const {
  return with<detail::ConcatenateNode<Element>>(other.node_);
}

template <class Element>
template <class Open>
auto Dataset<Element>::interleave(Open open, const InterleaveOptions& options) const {
  constexpr bool kOpensDataset = [] {
    if constexpr (std::is_invocable_v<Open&, Element>)
      return detail::kIsInstance<std::decay_t<std::invoke_result_t<Open&, Element>>, cohort::Dataset>;
    return false;
  }();
  static_assert(kOpensDataset, "the function of interleave() takes one element and returns a Dataset");
  if constexpr (kOpensDataset) {
    using Result = typename std::decay_t<std::invoke_result_t<Open&, Element>>::value_type;
    if (options.cycle_length < 1 || options.block_length < 1 || options.read_ahead < 0) {
      throw InvalidArgument(
          "interleave() with cycle_length {}, block_length {}, read_ahead {}: "
          "the first two must be at least 1, the last at least 0",
          options.cycle_length, options.block_length, options.read_ahead);
    }
    if (std::max(options.cycle_length, options.read_ahead) > detail::kMostElementsAhead) {
      throw InvalidArgument(
          "interleave() with cycle_length {}, read_ahead {} is too much to hold in memory; each is at most "
          "{}",
          options.cycle_length, options.read_ahead, detail::kMostElementsAhead);
    }
    auto open_node = [open = std::move(open)](Element element) { return open(std::move(element)).node(); };
    using Function = std::function<detail::DatasetNodePtr<Result>(Element)>;
    return Dataset<Result>(std::make_shared<detail::InterleaveNode<Element, Result>>(
        node_, std::make_shared<const Function>(std::move(open_node)), options));
  }
}

template <class Element>
Dataset<Element> Dataset<Element>::batch(std::int64_t size, bool drop_remainder) const {
  static_assert(detail::TensorStructure<Element>,
                "only tensors and structures of tensors can be stacked into batches; map() to them first, or "
                "describe the fields of an aggregate by COHORT_FIELDS(Type, fields...)");
  if (size < 1) throw InvalidArgument("batch(): the size must be at least 1, not {}", size);
  return with<detail::BatchNode<Element>>(size, drop_remainder);
}

template <class Element>
Dataset<Element> Dataset<Element>::unbatch() const {
  static_assert(detail::TensorStructure<Element>,
                "only tensors and structures of tensors have rows; COHORT_FIELDS(Type, fields...) makes a "
                "structure of an aggregate");
  return with<detail::UnbatchNode<Element>>();
}

template <class Element>
Dataset<Element> Dataset<Element>::cache() const {
  return with<detail::MemoryCacheNode<Element>>();
}

template <class Element>
Dataset<Element> Dataset<Element>::cache(std::string path) const {
  return with<detail::FileCacheNode<Element>>(std::move(path));
}

template <class Element>
Dataset<Element> Dataset<Element>::prefetch(std::int64_t elements) const {
  if (elements < 1)
    throw InvalidArgument("prefetch(): the number of elements must be at least 1, not {}", elements);
  if (elements > detail::kMostElementsAhead) {
    throw InvalidArgument("prefetch(): the number of elements must be at most {}, not {}",
                          detail::kMostElementsAhead, elements);
  }
  return with<detail::PrefetchNode<Element>>(elements);
}

template <class Element>
typename Dataset<Element>::Iterator Dataset<Element>::begin_at(const DatasetPosition& position) const {
  if (position.elements < 0) {
    throw InvalidArgument("a pass cannot begin at element {}; positions are what Iterator::position() gives",
                          position.elements);
  }
  auto elements = node_->iterate(detail::Pass(position.pass));
  elements->skip(position.elements);
  std::uint64_t passes = passes_->load();
  while (passes <= position.pass && !passes_->compare_exchange_weak(passes, position.pass + 1)) {
  }
  return Iterator(std::move(elements), position);
}

}  // namespace cohort
