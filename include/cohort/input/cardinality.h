// How many elements a dataset has, as far as that is known without reading it.
#pragma once

#include <cstdint>

namespace cohort {

class Cardinality {
 public:
  /// A dataset of `count` elements, at least 0.
  [[nodiscard]] static constexpr Cardinality of(std::int64_t count) { return Cardinality(count); }
  [[nodiscard]] static constexpr Cardinality infinite() { return Cardinality(kInfinite); }
  /// Known only by reading.
  [[nodiscard]] static constexpr Cardinality unknown() { return Cardinality(kUnknown); }

  [[nodiscard]] constexpr bool is_known() const { return count_ >= 0; }
  [[nodiscard]] constexpr bool is_infinite() const { return count_ == kInfinite; }
  /// The number of elements, where it is known.
  [[nodiscard]] constexpr std::int64_t count() const { return count_; }

  /// The cardinality of `rounds` such datasets in a row. More than can be counted is infinite.
  [[nodiscard]] Cardinality times(std::int64_t rounds) const;
  /// The cardinality of one dataset after the other.
  friend Cardinality operator+(const Cardinality& first, const Cardinality& second);
  /// The cardinality of datasets read side by side until the shorter ends.
  [[nodiscard]] static Cardinality shorter(const Cardinality& a, const Cardinality& b);

  friend bool operator==(const Cardinality&, const Cardinality&) = default;

 private:
  static constexpr std::int64_t kInfinite = -1;
  static constexpr std::int64_t kUnknown = -2;
  constexpr explicit Cardinality(std::int64_t count) : count_(count) {}

  std::int64_t count_;
};

}  // namespace cohort
