// Elements that are already the parts of replicas, from datasets that a program's function makes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
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

}  // namespace cohort::detail
