// PyTorch's reductions on Cohort's collectives. What Cohort has no operator for (bitwise ones, products of
// complex numbers) is gathered in pieces and combined by PyTorch's own functions, by rank. On tensors of
// bools SUM means "any" and PRODUCT "all". A mean of integers is rounded towards zero. PREMUL_SUM multiplies
// each rank's tensor by its factor, in the tensor's dtype, before the sum.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <cohort/collective/communicator.h>

namespace cohort::pytorch {

/// All tensors here lie on a CPU and are row-major.
class Reduction {
 public:
  /// @throws c10::TypeError when `op` makes no sense for tensors like `tensor`.
  Reduction(const c10d::ReduceOp& op, const at::Tensor& tensor);

  /// In place.
  void all_reduce(Communicator& communicator, const at::Tensor& tensor, const CallOptions& options) const;
  /// In place on the root; the others keep theirs, but for PREMUL_SUM.
  void reduce(Communicator& communicator, const at::Tensor& tensor, int root,
              const CallOptions& options) const;
  /// Combines block r of every member's `input` into the `output` of member r. `input` is not needed
  /// afterwards.
  void reduce_scatter(Communicator& communicator, const at::Tensor& input, const at::Tensor& output,
                      const CallOptions& options) const;

 private:
  void prepare(const at::Tensor& tensor) const;
  void finish(const at::Tensor& tensor, int size) const;
  [[nodiscard]] at::Tensor combine_rows(const at::Tensor& rows) const;
  void gather_and_combine(Communicator& communicator, const at::Tensor& tensor,
                          const CallOptions& options) const;

  const c10d::ReduceOp op_;
  bool gathers_ = false;  ///< Cohort has no operator for it
  ReduceOp combine_ = ReduceOp::kSum;
};

}  // namespace cohort::pytorch
