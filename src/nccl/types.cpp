#include "types.h"

#include <cohort/base/error.h>

namespace cohort::nccl {

std::optional<ncclDataType_t> arithmetic_type(DType dtype) noexcept {
  switch (dtype) {
    case DType::kInt8: return ncclInt8;
    case DType::kInt32: return ncclInt32;
    case DType::kInt64: return ncclInt64;
    case DType::kBool:
    case DType::kUInt8: return ncclUint8;
    case DType::kUInt32: return ncclUint32;
    case DType::kUInt64: return ncclUint64;
    case DType::kFloat16: return ncclFloat16;
    case DType::kBFloat16: return ncclBfloat16;
    case DType::kFloat32: return ncclFloat32;
    case DType::kFloat64: return ncclFloat64;
    case DType::kInt16:
    case DType::kUInt16: break;
  }
  return std::nullopt;
}

ncclRedOp_t operator_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return ncclSum;
    case ReduceOp::kMean: return ncclAvg;
    case ReduceOp::kMin: return ncclMin;
    case ReduceOp::kMax: return ncclMax;
    case ReduceOp::kProd: return ncclProd;
  }
  throw Internal("operator {} is not one of Cohort's", static_cast<int>(op));
}

}  // namespace cohort::nccl
