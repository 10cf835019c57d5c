// Elements that can be read in any order, for stages that choose among them.
#pragma once

#include <cstdint>
#include <span>

namespace cohort::detail {

template <class Element>
class RandomAccess {
 public:
  virtual ~RandomAccess() = default;

  [[nodiscard]] virtual std::int64_t size() const = 0;
  [[nodiscard]] virtual Element at(std::int64_t index) const = 0;
  /// The elements `begin` to `end-1` stacked; a view, where that is possible.
  [[nodiscard]] virtual Element range(std::int64_t begin, std::int64_t end) const = 0;
  /// The elements at `indices` stacked, each copied once. No indices give a batch of no rows.
  [[nodiscard]] virtual Element stacked(std::span<const std::int64_t> indices) const = 0;
};

}  // namespace cohort::detail
