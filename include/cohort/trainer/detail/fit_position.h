// How far a fit has come.
#pragma once

#include <cstdint>
#include <string>

#include <cohort/input/pass.h>

namespace cohort::detail {

struct FitPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;        ///< of the epoch: so many are done
  std::int64_t step = 0;         ///< through all epochs
  DatasetPosition dataset = {};  ///< of the following batch
  std::int64_t epoch_steps = 0;  ///< of the epoch before
  bool stopped = false;
  std::string history = {};  ///< as text
};

}  // namespace cohort::detail
