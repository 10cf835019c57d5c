// A Dataset describes where elements come from and how they are transformed; iterating
// it reads them, from the start each time. It is a value: transformations return new
// datasets that share their source. Elements are structures of tensors.
//
//     auto digits = Dataset<Batch>::from_tensors({images, labels}).shuffle({.seed = 7}).batch(64);
//     for (const Batch& batch : digits) { ... }
//
// The same dataset gives the same elements in the same order on every worker, provided that
// every worker iterates it equally often: each pass is shuffled anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include <cohort/input/detail/dataset_nodes.h>
#include <cohort/input/element_iterator.h>

namespace cohort {

struct ShuffleOptions {
  std::uint64_t seed = 0;
  bool reshuffle_each_iteration = true;  ///< another order in each pass; otherwise always the same
};

template <class Element>
class Dataset {
 public:
  class Iterator;

  /// One element per row of the tensors, which all have the same number of rows. No copy.
  /// @throws InvalidArgument when they differ in rows.
  [[nodiscard]] static Dataset from_tensors(Element tensors) {
    return Dataset(std::make_shared<detail::TensorNode<Element>>(std::move(tensors)));
  }

  /// All elements in a random order. The whole dataset is the buffer.
  /// @throws InvalidArgument for a dataset that never ends.
  [[nodiscard]] Dataset shuffle(ShuffleOptions options = {}) const {
    if (node_->is_infinite()) {
      throw InvalidArgument(
          "a dataset that is repeated for ever cannot be shuffled as a whole; shuffle before repeat");
    }
    return Dataset(std::make_shared<detail::ShuffleNode<Element>>(node_, options.seed,
                                                                  options.reshuffle_each_iteration));
  }

  /// `size` elements stacked into one, along a new first axis. The last batch may be smaller.
  /// @throws InvalidArgument for a size below 1.
  [[nodiscard]] Dataset batch(std::int64_t size, bool drop_remainder = false) const {
    if (size < 1)
      throw InvalidArgument("a batch of {} elements is not possible; the size is at least 1", size);
    return Dataset(std::make_shared<detail::BatchNode<Element>>(node_, size, drop_remainder));
  }

  /// The dataset `count` times in a row; without a count, for ever.
  /// @throws InvalidArgument for a negative count.
  [[nodiscard]] Dataset repeat(std::optional<std::int64_t> count = std::nullopt) const {
    if (count && *count < 0) {
      throw InvalidArgument("a dataset cannot be repeated {} times; leave the count out to repeat for ever",
                            *count);
    }
    return Dataset(std::make_shared<detail::RepeatNode<Element>>(node_, count));
  }

  [[nodiscard]] std::unique_ptr<ElementIterator<Element>> iterate() const { return node_->iterate(); }
  [[nodiscard]] Iterator begin() const { return Iterator(iterate()); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  explicit Dataset(detail::DatasetNodePtr<Element> node) : node_(std::move(node)) {}
  detail::DatasetNodePtr<Element> node_;
};

/// One pass over a dataset, for range-for.
template <class Element>
class Dataset<Element>::Iterator {
 public:
  using value_type = Element;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(std::unique_ptr<ElementIterator<Element>> elements)
      : elements_(std::move(elements)), current_(elements_->next()) {}

  const Element& operator*() const { return *current_; }
  Iterator& operator++() {
    current_ = elements_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& iterator, std::default_sentinel_t) { return !iterator.current_; }

 private:
  std::unique_ptr<ElementIterator<Element>> elements_;
  std::optional<Element> current_;
};

}  // namespace cohort
