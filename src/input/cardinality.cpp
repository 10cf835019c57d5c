#include <cohort/input/cardinality.h>

#include <algorithm>

namespace cohort {

Cardinality Cardinality::times(std::int64_t rounds) const {
  if (rounds == 0) return of(0);
  if (!is_known()) return *this;
  std::int64_t product = 0;
  return __builtin_mul_overflow(count_, rounds, &product) ? infinite() : of(product);
}

Cardinality operator+(const Cardinality& first, const Cardinality& second) {
  if (first.is_infinite() || second.is_infinite()) return Cardinality::infinite();
  if (!first.is_known() || !second.is_known()) return Cardinality::unknown();
  std::int64_t sum = 0;
  return __builtin_add_overflow(first.count_, second.count_, &sum) ? Cardinality::infinite()
                                                                   : Cardinality::of(sum);
}

Cardinality Cardinality::shorter(const Cardinality& a, const Cardinality& b) {
  const Cardinality nothing = of(0);
  if (a == nothing || b == nothing) return nothing;
  if (a.is_infinite()) return b;
  if (b.is_infinite()) return a;
  return a.is_known() && b.is_known() ? of(std::min(a.count_, b.count_)) : unknown();
}

}  // namespace cohort
