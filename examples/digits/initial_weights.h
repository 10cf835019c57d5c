// The weights that the networks on digits begin with.
#pragma once

#include <cstdint>
#include <random>

#include <cohort/device/tensor.h>

namespace digits {

/// float32[inputs, outputs], uniform with the variance that keeps signals at their size [Glorot, Bengio
/// 2010].
[[nodiscard]] cohort::Tensor initial_weights(std::int64_t inputs, std::int64_t outputs,
                                             std::mt19937_64& random);

}  // namespace digits
