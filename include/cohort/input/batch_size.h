// How many elements batches hold, as far as it is known from the pipeline.
#pragma once

#include <cstdint>
#include <optional>

namespace cohort::detail {

struct BatchSize {
  std::int64_t elements = 0;
  bool drops_remainder = false;  ///< every batch is of this size; otherwise some may be smaller

  friend bool operator==(const BatchSize&, const BatchSize&) = default;

  /// What is true of the batches of both; nothing where they differ in size.
  [[nodiscard]] static std::optional<BatchSize> common(const std::optional<BatchSize>& a,
                                                       const std::optional<BatchSize>& b) {
    if (!a || !b || a->elements != b->elements) return std::nullopt;
    return BatchSize{a->elements, a->drops_remainder && b->drops_remainder};
  }
};

}  // namespace cohort::detail
