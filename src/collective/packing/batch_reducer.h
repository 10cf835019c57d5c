// A BatchReducer all-reduces lists of tensors in few collectives: small tensors are
// copied side by side and go as one, large ones go alone and are not copied.
//
// It remembers how the lists that it has seen lately are packed, so make it once and use it for every step.
// One thread at a time uses it. All members of the communicator make the same calls with lists that look
// alike; they must agree on all shapes and dtypes. The memory that it keeps for a list comes from the
// communicator that first reduced this list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/collective/packing.h>

namespace cohort {

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

}  // namespace cohort
