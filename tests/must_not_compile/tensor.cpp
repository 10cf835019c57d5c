// Says: a tensor may be written to: wrap mutable memory, or copy with Tensor::from
#include <cohort/device/tensor.h>

#ifdef MISUSE
using Value = const float;
#else
using Value = float;
#endif

cohort::Tensor over(std::span<Value> values) { return cohort::Tensor::wrap(values, {2, 3}); }
