#include "operators.h"

#include <cohort/collective/reduction.h>

namespace cohort::mpi {
namespace {

template <DType kDType, ReduceOp kOp>
void combine(void* input, void* in_out, int* elements, MPI_Datatype* /*type*/) {
  const std::byte* const inputs[] = {static_cast<const std::byte*>(input),
                                     static_cast<const std::byte*>(in_out)};
  reduce_elements(kDType, kOp, inputs, static_cast<std::byte*>(in_out), static_cast<std::size_t>(*elements));
}

/// Sums and products wrap, so they are taken in the unsigned type: the bits are the same, and
/// overflow of a signed type would be undefined.
MPI_Datatype arithmetic_type(DType dtype, bool wraps) {
  switch (dtype) {
    case DType::kInt8: return wraps ? MPI_UINT8_T : MPI_INT8_T;
    case DType::kInt16: return wraps ? MPI_UINT16_T : MPI_INT16_T;
    case DType::kInt32: return wraps ? MPI_UINT32_T : MPI_INT32_T;
    case DType::kInt64: return wraps ? MPI_UINT64_T : MPI_INT64_T;
    case DType::kFloat32: return MPI_FLOAT;
    case DType::kFloat64: return MPI_DOUBLE;
    default: return storage_type(dtype);
  }
}

MPI_Op builtin(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean: return MPI_SUM;
    case ReduceOp::kProd: return MPI_PROD;
    case ReduceOp::kMin: return MPI_MIN;
    case ReduceOp::kMax: return MPI_MAX;
  }
  return MPI_OP_NULL;
}

}  // namespace

MPI_Datatype storage_type(DType dtype) {
  switch (size_of(dtype)) {
    case 1: return MPI_UINT8_T;
    case 2: return MPI_UINT16_T;
    case 4: return MPI_UINT32_T;
    default: return MPI_UINT64_T;
  }
}

Operators::Operators() {
  const auto add_arithmetic = [this]<DType kDType>(std::integral_constant<DType, kDType>) {
    own_.push_back({kDType, ReduceOp::kSum, Op(combine<kDType, ReduceOp::kSum>)});
    own_.push_back({kDType, ReduceOp::kProd, Op(combine<kDType, ReduceOp::kProd>)});
  };
  // Open MPI's vector instructions saturate sums of narrow integers, in the body of a buffer but not
  // in its tail: two uint8 of 200 gave 255 or 144.
  add_arithmetic(std::integral_constant<DType, DType::kInt8>{});
  add_arithmetic(std::integral_constant<DType, DType::kInt16>{});
  add_arithmetic(std::integral_constant<DType, DType::kUInt8>{});
  add_arithmetic(std::integral_constant<DType, DType::kUInt16>{});

  const auto add = [this]<DType kDType>(std::integral_constant<DType, kDType>) {
    own_.push_back({kDType, ReduceOp::kMin, Op(combine<kDType, ReduceOp::kMin>)});
    own_.push_back({kDType, ReduceOp::kMax, Op(combine<kDType, ReduceOp::kMax>)});
  };
  add(std::integral_constant<DType, DType::kFloat16>{});
  add(std::integral_constant<DType, DType::kBFloat16>{});
  add(std::integral_constant<DType, DType::kFloat32>{});
  add(std::integral_constant<DType, DType::kFloat64>{});
}

MpiArithmetic Operators::arithmetic(DType dtype, ReduceOp op) const {
  for (const Own& own : own_) {
    if (own.dtype == dtype && own.op == op) return {arithmetic_type(dtype, false), own.made.get(), false};
  }
  if (is_half(dtype)) return {MPI_FLOAT, builtin(op), true};
  const bool wraps = op != ReduceOp::kMin && op != ReduceOp::kMax;
  return {arithmetic_type(dtype, wraps), builtin(op), false};
}

}  // namespace cohort::mpi
