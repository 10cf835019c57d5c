// Says: a tensor may be written to: wrap mutable memory, or copy with Tensor::from
// Says: tensors have no elements of this type: use float, double, bool, an integer, float16 or bfloat16
// Says: vector<bool> has no elements to copy: use std::array<bool, N>, or another type
// Says: Tensor::from copies a vector, an array or a span: copy other ranges to a vector first
// Says: memory of tensors holds std::int64_t and std::uint64_t: use these for long long
#include <cstdint>
#include <list>
#include <vector>

#include <cohort/device/tensor.h>

using cohort::Tensor;

#ifdef MISUSE
using Value = const float;
using Wide = long double;
using Long = long long;
using Flags = std::vector<bool>;
using Numbers = std::list<float>;
#else
using Value = float;
using Wide = double;
using Long = std::int64_t;
using Flags = std::array<bool, 3>;
using Numbers = std::vector<float>;
#endif

Tensor over(std::span<Value> values) { return Tensor::wrap(values, {2, 3}); }
Tensor wide(const std::vector<Wide>& values) { return Tensor::from(values); }
Tensor flags(const Flags& values) { return Tensor::from(values, {3}); }
Tensor numbers(const Numbers& values) { return Tensor::from(values, {3}); }
Long first(const Tensor& tensor) { return tensor.span<Long>()[0]; }
