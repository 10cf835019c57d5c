// A LeafReducer all-reduces lists of leaves over the members of a communicator: dense ones
// in few collectives (see BatchReducer), the rows of sparse ones gathered. Made once and used
// for every step, by one thread at a time.
#pragma once

#include <span>
#include <vector>

#include <cohort/value/tensor_or_slices.h>

#include "collective/packing/batch_reducer.h"

namespace cohort {

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

}  // namespace cohort
