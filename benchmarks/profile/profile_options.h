// What is measured in a profile: the gradients of a model, all-reduced step by step.
#pragma once

#include <optional>
#include <string>

namespace cohort::bench {

struct ProfileOptions {
  std::string model;                 ///< CSV file: the model's tensors in the order of the forward pass
  std::optional<double> compute_ms;  ///< of a step's backward pass; unset: as long as the communication takes
  int steps = 5;                     ///< that are timed, of each way to communicate
  bool check = true;
};

}  // namespace cohort::bench
