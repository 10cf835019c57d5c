// How the leaves of values are reduced, dense and sparse alike: their arithmetic within a process, and the
// all-reduce, all-gather and reduce-scatter of them over the members of a communicator.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <cohort/collective/call_purpose.h>
#include <cohort/collective/communicator.h>
#include <cohort/strategy/cross_device_ops.h>
#include <cohort/strategy/structure_reduction.h>
#include <cohort/value/indexed_slices.h>
#include <cohort/value/tensor_or_slices.h>

#include "collective/packing/tensor_lists.h"

namespace cohort {

/// The dtype of a MEAN: integers become floating, wide enough for their values. Bool, which has no mean,
/// stays.
[[nodiscard]] DType mean_dtype(DType dtype);

/// @throws InvalidArgument when `op` is not defined for the dtype, or slices do not fit together.
void require_defined(ReduceOp op, const TensorOrSlices& leaf);

/// The operand of `op`: `leaf` itself, in the dtype of the result.
/// @throws as require_defined.
[[nodiscard]] TensorOrSlices prepared(ReduceOp op, const TensorOrSlices& leaf);

/// Of the dtypes that a MEAN converts: replicas that convert different ones to the same must be told apart.
[[nodiscard]] std::uint64_t converted_dtypes(ReduceOp op, std::span<const TensorOrSlices> leaves);

/// `name(i)` names the owner of component i.
/// @throws InvalidArgument naming one that differs from the first in kind, dtype or shape.
void require_alike(const Components& value, const std::function<std::string(std::size_t)>& name);

/// Prepared components, which are alike, become one: dense ones element by element in this order, rows of
/// sparse ones are concatenated.
[[nodiscard]] TensorOrSlices reduced(ReduceOp op, std::span<const TensorOrSlices> components);

/// Divides the elements of a prepared leaf, in place.
void divide(const TensorOrSlices& leaf, std::size_t divisor);

/// `result` itself for the first destination on its device, copies for the others.
[[nodiscard]] Components placed(const TensorOrSlices& result, const Destinations& destinations);

/// All-gather of tensors along an axis, whose extents the other members do not know: the members' tensors, by
/// rank, one after the other along `axis`. Collective.
/// @throws InvalidArgument on every member for an axis that a tensor does not have, and where other extents
/// or dtypes differ, naming the members as the purpose does.
[[nodiscard]] Tensor gathered_along(Communicator& communicator, const Tensor& own, int axis,
                                    const CallPurpose& purpose);

/// All-gather of sparse values: concatenates the k-th of each member's `slices`, for each k. Members may have
/// different numbers of rows, also none. One collective exchanges their descriptions, then two per k move
/// values and indices.
/// @throws InvalidArgument on every member when dtypes or dense shapes differ, naming the members that
/// differ.
[[nodiscard]] std::vector<IndexedSlices> all_gather_slices(Communicator& communicator,
                                                           std::span<const IndexedSlices> slices);

/// All-reduces lists of leaves over the members of a communicator: dense ones in few collectives (see
/// BatchReducer), the rows of sparse ones gathered. Made once and used for every step, by one thread at a
/// time.
class LeafReducer {
 public:
  /// The results, in new storage and in the order of the leaves, which are prepared for `op`.
  /// @throws InvalidArgument on every member when leaves of members do not fit together.
  [[nodiscard]] std::vector<TensorOrSlices> all_reduced(Communicator& communicator,
                                                        std::span<const TensorOrSlices> leaves, ReduceOp op);

  /// Dense ones in place; they must not overlap.
  void all_reduce(Communicator& communicator, std::span<const Tensor> tensors, ReduceOp op) {
    dense_.all_reduce(communicator, tensors, op);
  }

 private:
  BatchReducer dense_;
};

// In a reduce-scatter of leaves, parts may differ in length and lie along any axis, while the communicator
// scatters equal blocks. So shorter parts are padded to the longest.

/// @throws InvalidArgument for a part that differs from the value elsewhere than along `axis`, and for
/// scalars.
void require_part(const Tensor& value, const Shape& part, int axis);

/// This member's part of each value's reduction, in new storage. The parts of the members lie one after the
/// other along `axis`; one exchange for all values says how long they are.
/// @throws InvalidArgument on every member when the parts together are not as long as somebody's value.
[[nodiscard]] LeafList reduce_scatter_parts(Communicator& communicator, ReduceOp op,
                                            std::span<const Tensor> values, std::span<const Shape> parts,
                                            int axis);

}  // namespace cohort
