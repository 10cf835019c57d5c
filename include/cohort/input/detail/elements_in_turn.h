// Elements that are replicas' parts already, as functions that make datasets return them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/detail/local_parts.h>

namespace cohort::detail {

template <class Element>
class ElementsInTurn final : public LocalSteps<Element> {
 public:
  /// One pipeline for all `replicas`, which take turns, or one for each.
  ElementsInTurn(std::vector<std::unique_ptr<ElementIterator<Element>>> pipelines, int replicas)
      : pipelines_(std::move(pipelines)), replicas_(static_cast<std::size_t>(replicas)) {}

  std::optional<LocalParts<Element>> next() override {
    LocalParts<Element> parts;
    parts.reserve(replicas_);
    bool any = false;
    for (std::size_t replica = 0; replica < replicas_; ++replica) {
      parts.push_back(pipelines_[replica % pipelines_.size()]->next());
      any = any || parts.back().has_value();
    }
    if (!any) return std::nullopt;
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

}  // namespace cohort::detail
