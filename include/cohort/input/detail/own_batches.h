// Batches that a worker reads for itself alone. Each is cut into as many steps as there are workers, so that
// a batch of the global batch size feeds the same number of elements per step as under any other policy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/batch_size.h>
#include <cohort/input/detail/local_parts.h>
#include <cohort/input/split.h>

namespace cohort::detail {

enum class Streams {
  kAlike,     ///< workers may read the same elements: they cut alike, and no step is empty for all
  kDisjoint,  ///< workers read different elements: their cuts complement each other in each step
};

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

}  // namespace cohort::detail
