// The calls of one member that a graph holds.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "cuda/graph_part.h"
#include "nccl_communicator_impl.h"

namespace cohort::nccl {

class NcclCommunicatorImpl::Captured final : public cuda::GraphPart {
 public:
  explicit Captured(std::shared_ptr<NcclCommunicatorImpl> impl) : impl_(std::move(impl)) {}

  void conclude() override { impl_->conclude(*this); }
  void prepare_launch() override { launch_ = impl_->prepare_launch(*this); }
  void launched() override { impl_->launched(std::move(launch_)); }

 private:
  std::shared_ptr<NcclCommunicatorImpl> impl_;  // first, for operations give their events back to it

 public:
  using Calls = std::vector<std::shared_ptr<Operation>>;
  const std::shared_ptr<Calls> calls = std::make_shared<Calls>();  ///< they own their tensors' memory

 private:
  std::shared_ptr<Operation> launch_;  ///< the one being made
};

}  // namespace cohort::nccl
