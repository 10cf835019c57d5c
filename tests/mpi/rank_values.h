// For tests that run on every rank: communicators of their Session, and tensors whose sums
// are known.
#pragma once

#include <memory>

#include <cohort/collective/communicator.h>

#include "mpi_main.h"

namespace cohort {

inline std::unique_ptr<Communicator> make_communicator(double timeout_seconds = 20) {
  return testing::session().make_communicator({.timeout_seconds = timeout_seconds});
}

/// All workers have come this far.
inline void meet() { static_cast<void>(testing::session().exchange("")); }

inline Tensor filled(std::int64_t elements, float value) {
  return Tensor::full({elements}, DType::kFloat32, value);
}

inline float sum_of_ranks() {
  return static_cast<float>(testing::session().size() * (testing::session().size() + 1)) / 2;
}

inline Tensor own_values(std::int64_t elements) {
  return filled(elements, static_cast<float>(testing::session().rank() + 1));
}

}  // namespace cohort
