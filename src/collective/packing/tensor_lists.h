// Lists of tensors in few collectives: their all-reduce, an all-gather of tensors of any shapes, and what all
// who reduce packs or buckets of tensors need: what a collective costs, memory for a list, and the calls that
// move one tensor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/collective/packing.h>
#include <cohort/device/tensor.h>
#include <cohort/device/tensor_spec.h>

namespace cohort {

/// All-reduces lists of tensors in few collectives: small tensors are copied side by side and go as one,
/// large ones go alone and are not copied.
///
/// It remembers how the lists that it has seen lately are packed, so make it once and use it for every step.
/// One thread at a time uses it. All members of the communicator make the same calls with lists that look
/// alike; they must agree on all shapes and dtypes. The memory that it keeps for a list comes from the
/// communicator that first reduced this list.
class BatchReducer {
 public:
  /// The packs are those of make_packs for the communicator's `bytes_per_pack` and this cost; unset: the
  /// communicator's own.
  explicit BatchReducer(std::optional<CommunicationCost> cost = {});
  ~BatchReducer();
  BatchReducer(BatchReducer&&) noexcept;
  BatchReducer& operator=(BatchReducer&&) noexcept;

  /// Every tensor in place; they must not overlap. Takes no new memory once it has seen such a list.
  /// @throws InvalidArgument when `op` is not defined for one of the dtypes; nothing has been sent then.
  void all_reduce(Communicator& communicator, std::span<const Tensor> tensors, ReduceOp op);

  /// The results in new tensors, some of which share storage; `tensors` are left alone.
  [[nodiscard]] std::vector<Tensor> all_reduced(Communicator& communicator, std::span<const Tensor> tensors,
                                                ReduceOp op);

 private:
  struct Plan;
  Plan& plan_for(Communicator& communicator, std::span<const Tensor> tensors);

  std::optional<CommunicationCost> cost_;
  std::vector<std::unique_ptr<Plan>> plans_;  ///< the latest first
};

/// What the collectives of a group really cost, for packing tensors. Communicators of GPUs measure it by
/// themselves when it is first needed (Communicator::cost); for CPUs a program can:
///
///   GradientBuckets buckets(communicator, gradients, {.cost = measured_cost(communicator)});
///
/// Packs that follow a measurement may differ from run to run, and with them the last bits of sums whose
/// order depends on the place in a call, as over several nodes and with NCCL.
///
/// From some all-reduces and copies of tensors on `communicator.device()`: the slowest member decides, in
/// powers of two, so that noise seldom changes a pack. The same on all members. Collective: some thirty
/// all-reduces, which take some 10 ms, and on slow networks as long as 1 MiB takes there.
/// @throws what the collectives throw; Unavailable when memory is short.
[[nodiscard]] CommunicationCost measured_cost(Communicator& communicator);

/// Every member's tensor, by rank, on every member. Shapes may differ, and the other members do not know
/// them: they travel first, then the elements. Dtypes must agree.
/// @throws InvalidArgument on every member when dtypes differ, naming both.
[[nodiscard]] std::vector<Tensor> all_gather_tensors(Communicator& communicator, const Tensor& tensor);

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
