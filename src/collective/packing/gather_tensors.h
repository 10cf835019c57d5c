// All-gather of tensors whose shapes the other members do not know: the shapes travel
// first, then the elements.
#pragma once

#include <vector>

#include <cohort/collective/communicator.h>

namespace cohort {

/// Every member's tensor, by rank, on every member. Shapes may differ; dtypes must agree.
/// @throws InvalidArgument on every member when dtypes differ, naming both.
[[nodiscard]] std::vector<Tensor> all_gather_tensors(Communicator& communicator, const Tensor& tensor);

}  // namespace cohort
