#include "exact_inputs.h"

namespace cohort::testing {
namespace {

std::int64_t exact_value(int rank, std::size_t index, ReduceOp op, DType dtype) {
  const std::size_t mixed = static_cast<std::size_t>(rank) * 7 + index * 3;
  if (dtype == DType::kBool) return mixed % 3 == 0;
  // Products stay powers of two, and below 2^63 since ranks from 64 on have ones alone; they wrap in narrower
  // integers. Sums of up to 51 members are exact in bfloat16's 8 bits; those of more are rounded once.
  if (op == ReduceOp::kProd) return rank < 64 && mixed % 2 == 1 ? 2 : 1;
  return static_cast<std::int64_t>(mixed % 5 + 1);
}

template <class T>
T exact_element(int members, std::size_t index, ReduceOp op, DType dtype) {
  std::int64_t result = exact_value(0, index, op, dtype);
  for (int rank = 1; rank < members; ++rank) {
    const std::int64_t value = exact_value(rank, index, op, dtype);
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kMean: result += value; break;
      case ReduceOp::kMin: result = std::min(result, value); break;
      case ReduceOp::kMax: result = std::max(result, value); break;
      case ReduceOp::kProd: result *= value; break;
    }
  }
  if (op != ReduceOp::kMean) return convert_element<T>(result);
  // One division and one rounding, in the type in which members' values are combined.
  if constexpr (HalfElement<T>)
    return T(static_cast<float>(result) / static_cast<float>(members));
  else
    return static_cast<T>(static_cast<T>(result) / static_cast<T>(members));
}

}  // namespace

Tensor exact_inputs(int rank, DType dtype, ReduceOp op, std::size_t elements) {
  Tensor tensor = Tensor::uninitialized({static_cast<std::int64_t>(elements)}, dtype);
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    std::size_t index = 0;
    for (T& value : tensor.span<T>()) value = convert_element<T>(exact_value(rank, index++, op, dtype));
  });
  return tensor;
}

Tensor exact_result(int members, DType dtype, ReduceOp op, std::size_t elements) {
  Tensor tensor = Tensor::uninitialized({static_cast<std::int64_t>(elements)}, dtype);
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    std::size_t index = 0;
    for (T& value : tensor.span<T>()) value = exact_element<T>(members, index++, op, dtype);
  });
  return tensor;
}

}  // namespace cohort::testing
