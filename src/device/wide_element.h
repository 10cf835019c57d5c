// The type in which elements of optimizers are computed.
#pragma once

#include <type_traits>

namespace cohort {

/// 16-bit elements are computed in float32, and rounded once.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace cohort
