// Each element replaced by the result of a function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/parallel_stage.h>
#include <cohort/input/detail/transformation_node.h>

namespace cohort {

struct MapOptions {
  int parallelism = 1;     ///< calls of the function at a time, at most 4096; above 1, on threads of its own
  bool keep_order = true;  ///< otherwise results come as they are done, in any order
};

}  // namespace cohort

namespace cohort::detail {

/// Several for each core of any machine; more would be a mistake.
inline constexpr int kMostThreads = 4096;

template <class In, class Out>
using MapFunction = std::shared_ptr<const std::function<Out(In)>>;

/// On the consumer's thread.
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

}  // namespace cohort::detail
