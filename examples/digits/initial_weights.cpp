#include "initial_weights.h"

#include <cmath>

namespace digits {

using cohort::DType;
using cohort::Tensor;

Tensor initial_weights(std::int64_t inputs, std::int64_t outputs, std::mt19937_64& random) {
  const double limit = std::sqrt(6.0 / static_cast<double>(inputs + outputs));
  Tensor weights = Tensor::uninitialized({inputs, outputs}, DType::kFloat32);
  for (float& weight : weights.span<float>()) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    weight = static_cast<float>((2 * unit - 1) * limit);
  }
  return weights;
}

}  // namespace digits
