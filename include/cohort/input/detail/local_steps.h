// The batches of a worker's replicas, step by step, before the workers agree on the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/device/device.h>
#include <cohort/input/batch_size.h>
#include <cohort/input/element_iterator.h>
#include <cohort/input/split.h>

namespace cohort::detail {

/// One entry per replica of the worker: its part of a step, or nothing where its data has ended. At
/// least one of them has data.
template <class Element>
using LocalParts = std::vector<std::optional<Element>>;

template <class Element>
using LocalSteps = ElementIterator<LocalParts<Element>>;

/// Batches that all workers read, and of which each keeps its replicas' parts. A batch is a step. Its parts
/// go to the workers in turn, one round for each of their replicas.
template <class Element>
class SharedBatches final : public LocalSteps<Element> {
 public:
  SharedBatches(std::unique_ptr<ElementIterator<Element>> batches, const WorkerPlace& place)
      : batches_(std::move(batches)), own_parts_([place](std::int64_t rows) {
          std::vector<RowRange> parts;
          parts.reserve(static_cast<std::size_t>(place.replicas_per_worker));
          for (int local = 0; local < place.replicas_per_worker; ++local)
            parts.push_back(part_of(rows, local * place.workers + place.worker, place.replicas()));
          return parts;
        }) {}

  std::optional<LocalParts<Element>> next() override {
    auto parts = batches_->next_parts(own_parts_);
    if (!parts) return std::nullopt;
    return LocalParts<Element>(std::make_move_iterator(parts->begin()),
                               std::make_move_iterator(parts->end()));
  }

  std::int64_t skip(std::int64_t steps) override { return batches_->skip(steps); }

 private:
  std::unique_ptr<ElementIterator<Element>> batches_;
  SplitRule own_parts_;
};

enum class Streams {
  kAlike,     ///< workers may read the same elements: they cut alike, and no step is empty for all
  kDisjoint,  ///< workers read different elements: their cuts complement each other in each step
};

/// Batches that a worker reads for itself alone. Each is cut into as many steps as there are workers, so that
/// a batch of the global batch size feeds the same number of elements per step as under any other policy.
template <class Element>
class OwnBatches final : public LocalSteps<Element> {
 public:
  /// `whole` is the size of a full batch, where it is known; otherwise each batch counts as full.
  OwnBatches(std::unique_ptr<ElementIterator<Element>> batches, const std::optional<BatchSize>& whole,
             const WorkerPlace& place, Streams streams)
      : batches_(std::move(batches)),
        cuts_(
            [=](std::int64_t rows) { return cuts_of(rows, whole ? whole->elements : rows, place, streams); }),
        per_step_(static_cast<std::size_t>(place.replicas_per_worker)) {}

  std::optional<LocalParts<Element>> next() override {
    while (given_ == parts_.size()) {
      auto parts = batches_->next_parts(cuts_);
      if (!parts) return std::nullopt;
      parts_ = std::move(*parts);
      given_ = 0;
    }
    const auto first = parts_.begin() + static_cast<std::ptrdiff_t>(given_);
    given_ += per_step_;
    return LocalParts<Element>(std::make_move_iterator(first),
                               std::make_move_iterator(first + static_cast<std::ptrdiff_t>(per_step_)));
  }

 private:
  /// One range for each replica and step. A partial batch is cut to the sizes of a full one; steps for which
  /// it has no rows are left out.
  static std::vector<RowRange> cuts_of(std::int64_t rows, std::int64_t whole, WorkerPlace place,
                                       Streams streams) {
    const auto per_step = static_cast<std::size_t>(place.replicas_per_worker);
    if (streams == Streams::kAlike) place.worker = 0;
    std::vector<RowRange> cuts;
    std::int64_t begin = 0;
    for (const std::int64_t size : rebatch_sizes(whole, place)) {
      const bool used_up = begin == rows && (rows < whole || streams == Streams::kAlike);
      if (used_up && cuts.size() % per_step == 0) break;
      const std::int64_t end = std::min(begin + size, rows);
      cuts.push_back({begin, end});
      begin = end;
    }
    return cuts;
  }

  std::unique_ptr<ElementIterator<Element>> batches_;
  SplitRule cuts_;
  std::size_t per_step_;
  std::vector<Element> parts_;  // of the current batch
  std::size_t given_ = 0;
};

/// Elements that are already the parts of replicas, from datasets that a program's function makes.
template <class Element>
class ElementsInTurn final : public LocalSteps<Element> {
 public:
  /// One pipeline for all `replicas`, which take turns, or one for each.
  ElementsInTurn(std::vector<std::unique_ptr<ElementIterator<Element>>> pipelines, int replicas)
      : pipelines_(std::move(pipelines)), replicas_(static_cast<std::size_t>(replicas)) {}

  // If one part fails, the others are read all the same, so that the next step is the same as without the
  // error.
  std::optional<LocalParts<Element>> next() override {
    LocalParts<Element> parts(replicas_);
    std::exception_ptr error;
    for (std::size_t replica = 0; replica < replicas_; ++replica) {
      try {
        parts[replica] = pipelines_[replica % pipelines_.size()]->next();
      } catch (...) {
        error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
    if (std::ranges::none_of(parts, [](const auto& part) { return part.has_value(); })) return std::nullopt;
    return parts;
  }

  std::int64_t skip(std::int64_t steps) override {
    const auto turns = static_cast<std::int64_t>(replicas_ / pipelines_.size());
    std::int64_t skipped = 0;
    for (const auto& pipeline : pipelines_)
      skipped = std::max(skipped, (pipeline->skip(steps * turns) + turns - 1) / turns);
    return skipped;
  }

 private:
  std::vector<std::unique_ptr<ElementIterator<Element>>> pipelines_;
  std::size_t replicas_;
};

/// A worker's steps, each replica's part on that replica's device.
template <class Element>
class FetchedParts final : public LocalSteps<Element> {
 public:
  /// `devices[l]` is local replica l's.
  FetchedParts(std::unique_ptr<LocalSteps<Element>> steps, std::vector<Device> devices)
      : steps_(std::move(steps)), devices_(std::move(devices)) {}

  std::optional<LocalParts<Element>> next() override {
    std::optional<LocalParts<Element>> parts = steps_->next();
    if (!parts) return std::nullopt;
    for (std::size_t replica = 0; replica < parts->size(); ++replica) {
      std::optional<Element>& part = (*parts)[replica];
      if (part) for_each_leaf([&](Tensor& tensor) { tensor = tensor.to(devices_[replica]); }, *part);
    }
    return parts;
  }

  std::int64_t skip(std::int64_t steps) override { return steps_->skip(steps); }

 private:
  std::unique_ptr<LocalSteps<Element>> steps_;
  std::vector<Device> devices_;
};

}  // namespace cohort::detail
