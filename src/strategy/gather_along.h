// All-gather of tensors along an axis, whose extents the other members do not know.
#pragma once

#include <cohort/collective/call_purpose.h>
#include <cohort/collective/communicator.h>

namespace cohort {

/// The members' tensors, by rank, one after the other along `axis`. Collective.
/// @throws InvalidArgument on every member for an axis that a tensor does not have, and where other extents
/// or dtypes differ, naming the members as the purpose does.
[[nodiscard]] Tensor gathered_along(Communicator& communicator, const Tensor& own, int axis,
                                    const CallPurpose& purpose);

}  // namespace cohort
