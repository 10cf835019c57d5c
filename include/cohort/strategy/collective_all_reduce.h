// The default of strategies: the components of this process are reduced where they are, and collectives over
// the workers do the rest. Small tensors of a batch share a collective.
#pragma once

#include <memory>

#include <cohort/collective/communicator.h>
#include <cohort/strategy/cross_device_ops.h>

namespace cohort {

class LeafReducer;

class CollectiveAllReduce final : public CrossDeviceOps {
 public:
  /// Among the devices of this process.
  CollectiveAllReduce();

  /// Also over the members of `workers`, each of which contributes equally many components and makes the same
  /// calls in the same order. `workers` must outlive this object.
  explicit CollectiveAllReduce(Communicator& workers);
  ~CollectiveAllReduce() override;

  CollectiveAllReduce(const CollectiveAllReduce&) = delete;
  CollectiveAllReduce& operator=(const CollectiveAllReduce&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return "CollectiveAllReduce"; }

 private:
  [[nodiscard]] Components reduce_implementation(ReduceOp op, const ReduceRequest& request,
                                                 const CommunicationOptions& options) override;
  [[nodiscard]] std::vector<Components> batch_reduce_implementation(
      ReduceOp op, std::span<const ReduceRequest> requests, const CommunicationOptions& options) override;
  [[nodiscard]] int workers() const noexcept override { return workers_ == nullptr ? 1 : workers_->size(); }

  Communicator* workers_ = nullptr;
  std::unique_ptr<LeafReducer> reducer_;
};

}  // namespace cohort
