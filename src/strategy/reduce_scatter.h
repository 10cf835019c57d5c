// A reduce-scatter whose parts may differ in length and lie along any axis, while the
// communicator scatters equal blocks. So shorter parts are padded to the longest.
#pragma once

#include <span>

#include <cohort/collective/communicator.h>
#include <cohort/strategy/structure_reduction.h>

namespace cohort {

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
