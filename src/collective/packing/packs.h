// What all who reduce packs or buckets of tensors need: memory for a list of them, and the calls that move
// one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/device/tensor.h>
#include <cohort/device/tensor_spec.h>

namespace cohort {

/// Uninitialised tensors like `specs`, from one `communicator.allocate`, which sees none if they have no
/// bytes. An allocation of a communicator of GPUs is collective and takes at least some MiB, with some
/// versions of NCCL hundreds of them.
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

/// Calls `function(input, output)` for each part of two tensors with as many elements: one, or several for
/// tensors that are larger than the communicator's largest call.
template <class Function>
void for_each_call_part(const Communicator& communicator, const Tensor& input, const Tensor& output,
                        Function function) {
  const std::size_t largest = communicator.largest_call_bytes(input);
  if (input.bytes() <= largest) return function(input, output);
  const Tensor from = input.reshape({-1});
  const Tensor to = output.reshape({-1});
  const auto elements = static_cast<std::int64_t>(input.elements());
  const auto step = static_cast<std::int64_t>(largest / size_of(input.dtype()));
  for (std::int64_t begin = 0; begin < elements; begin += step) {
    const std::int64_t end = std::min(begin + step, elements);
    function(from.rows(begin, end), to.rows(begin, end));
  }
}

}  // namespace cohort
