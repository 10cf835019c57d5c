// What NCCL calls Cohort's dtypes and operators, as far as it has them.
#pragma once

#include <optional>

#include <nccl.h>

#include <cohort/collective/reduce_op.h>
#include <cohort/device/dtype.h>

namespace cohort::nccl {

/// What NCCL computes with. bool has MIN and MAX alone, for which it is as good as a number.
[[nodiscard]] std::optional<ncclDataType_t> arithmetic_type(DType dtype) noexcept;

[[nodiscard]] ncclRedOp_t operator_of(ReduceOp op);

}  // namespace cohort::nccl
