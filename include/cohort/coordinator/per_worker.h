// A value that every worker has one of, of its own: a dataset, an iterator, a table. Functions that are given
// one get the element of the worker that runs them. A worker that comes later, or again, makes its own.
#pragma once

#include <cstdint>

namespace cohort {

template <class T>
class PerWorker {
 public:
  /// Internal: coordinators make them.
  explicit PerWorker(std::uint64_t number) noexcept : number_(number) {}
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

 private:
  std::uint64_t number_;
};

}  // namespace cohort
