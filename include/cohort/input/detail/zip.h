// Elements of several datasets side by side, until the shortest ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <cohort/input/detail/dataset_node.h>

namespace cohort::detail {

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

}  // namespace cohort::detail
