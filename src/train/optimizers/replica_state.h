// What an optimizer keeps for one replica.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <cohort/train/optimizers/optimizer.h>

#include "share_plan.h"

namespace cohort {

struct Optimizer::ReplicaState {
  std::int64_t steps = 0;
  /// By variable, which is kept alive: a later one at the same address would be taken for it.
  std::unordered_map<std::shared_ptr<VariableState>, std::vector<Variable>> slots;

  // Lists of a step, kept with their memory: a step like the one before allocates nothing.
  std::vector<Tensor> gradients;
  std::vector<std::size_t> shared;
  std::vector<Tensor> slot_components;
  std::optional<Tensor> examples;
  std::vector<double> squares;
  std::vector<const VariableState*> named;       ///< the variables of this step
  std::vector<const VariableState*> named_once;  ///< those of the last one
  std::vector<const VariableState*> sorted;

  double scale = 1;               ///< of the loss
  std::int64_t steady_steps = 0;  ///< without overflow, since the scale changed

  // What was gathered since the last step.
  std::vector<GradientAndVariable> accumulated;
  std::vector<Tensor> sums;  ///< the same gradients, those of 16 bits in float32
  std::int64_t calls = 0;
  double accumulated_examples = 0;

  /// One of `named` that is there twice; null if there is none.
  [[nodiscard]] const VariableState* find_named_twice() {
    if (named == named_once) return nullptr;
    sorted = named;
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) return *twice;
    named_once = named;
    return nullptr;
  }

  /// The number of examples becomes the last of the gradients, to be summed with them.
  void add_examples(double number, Device device) {
    const bool is_wide = !gradients.empty() && gradients.front().dtype() == DType::kFloat64;
    const DType dtype = is_wide ? DType::kFloat64 : DType::kFloat32;
    if (!gradients.empty()) device = gradients.front().device();
    if (!examples || examples->dtype() != dtype || examples->device() != device)
      examples = Tensor::zeros({}, dtype, device);
    examples->fill(number);
    gradients.push_back(*examples);
  }
  double take_examples() {
    const double sum = gradients.back().on_host().item<double>();
    gradients.pop_back();
    return sum;
  }

  /// Of all blocks, added to `sum` in their order.
  double add_squares(double sum, const Tensor& gradient) {
    const Tensor there = gradient.on_host();
    squares.resize(blocks_of(there.elements()));
    block_squares(there, squares);
    for (const double block : squares) sum += block;
    return sum;
  }
};

}  // namespace cohort
