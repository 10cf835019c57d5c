// The calls of one member that a graph holds.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "cuda/graph_part.h"
#include "member.h"

namespace cohort::nccl {

class Member::Captured final : public cuda::GraphPart {
 public:
  explicit Captured(std::shared_ptr<Member> member) : member_(std::move(member)) {}

  void conclude() override { member_->conclude(*this); }
  void prepare_launch() override { launch_ = member_->prepare_launch(*this); }
  void launched() override { member_->launched(std::move(launch_)); }

 private:
  std::shared_ptr<Member> member_;  // first, for operations give their events back to it

 public:
  using Calls = std::vector<std::shared_ptr<Operation>>;
  const std::shared_ptr<Calls> calls = std::make_shared<Calls>();  ///< which own their tensors' memory

 private:
  std::shared_ptr<Operation> launch_;  ///< that is being made
};

}  // namespace cohort::nccl
