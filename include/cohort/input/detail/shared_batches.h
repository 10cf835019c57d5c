// Batches that all workers read, and of which each keeps its replicas' parts.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/local_parts.h>
#include <cohort/input/split.h>

namespace cohort::detail {

/// A batch is a step. Its parts go to the workers in turn, one round for each of their replicas.
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

}  // namespace cohort::detail
