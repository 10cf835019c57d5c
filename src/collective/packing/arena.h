// Memory for a list of packs or buckets: one allocation for all of them. An allocation of a communicator of
// GPUs is collective and takes at least some MiB, with some versions of NCCL hundreds of them.
#pragma once

#include <span>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/device/tensor.h>
#include <cohort/device/tensor_spec.h>

namespace cohort {

/// Uninitialised tensors like `specs`, from one `communicator.allocate`, which sees none if they have no
/// bytes.
[[nodiscard]] inline std::vector<Tensor> allocate_together(Communicator& communicator,
                                                           std::span<const TensorSpec> specs) {
  constexpr std::size_t kApart = 256;  // as far as CUDA's own allocations
  const auto room = [](const TensorSpec& spec) { return (spec.bytes() + kApart - 1) / kApart * kApart; };
  std::size_t bytes = 0;
  for (const TensorSpec& spec : specs) bytes += room(spec);
  const Tensor arena = bytes == 0 ? Tensor::uninitialized({0}, DType::kUInt8, communicator.device())
                                  : communicator.allocate({static_cast<std::int64_t>(bytes)}, DType::kUInt8);
  std::vector<Tensor> tensors;
  tensors.reserve(specs.size());
  std::size_t offset = 0;
  for (const TensorSpec& spec : specs) {
    tensors.push_back(Tensor::wrap(arena.buffer(), offset, spec.shape, spec.dtype));
    offset += room(spec);
  }
  return tensors;
}

}  // namespace cohort
