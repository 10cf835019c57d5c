// What NCCL does for each kind of call, and what it calls Cohort's dtypes and operators. Data that is only
// moved goes as bytes, whatever its dtype; what NCCL has no collective for goes as sends and receives within
// one group.
#pragma once

#include <optional>

#include <nccl.h>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/reduce_op.h>
#include <cohort/device/dtype.h>

namespace cohort::nccl {

/// What NCCL computes with, as far as it has it. bool has MIN and MAX alone, for which it is as good as a
/// number.
[[nodiscard]] std::optional<ncclDataType_t> arithmetic_type(DType dtype) noexcept;

[[nodiscard]] ncclRedOp_t operator_of(ReduceOp op);

/// Whether NCCL can execute a call that moves data. It has no 16-bit integers to reduce,
/// and no messages that may pass collectives.
[[nodiscard]] bool can_carry(const CollectiveCall& call) noexcept;

/// Puts the call of member `rank` of `size` on `stream`; within a group of NCCL's calls.
void launch(const CollectiveCall& call, int rank, int size, ncclComm_t comm, cudaStream_t stream);

}  // namespace cohort::nccl
