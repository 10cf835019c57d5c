// The Communicator that a member's owner has in hand.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <cohort/collective/communicator.h>

#include "member.h"

namespace cohort::nccl {

class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(std::shared_ptr<Member> member)
      : Communicator(member->control().rank(),
                     {member->control().members().begin(), member->control().members().end()},
                     member->control().options()),
        member_(std::move(member)) {}
  ~NcclCommunicator() override { member_->close(); }

  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  [[nodiscard]] const std::shared_ptr<Member>& member() const noexcept { return member_; }

  [[nodiscard]] std::string_view name() const noexcept override { return "nccl"; }

  [[nodiscard]] std::unique_ptr<Communicator> split(std::optional<int> color, int key) override {
    std::optional<MemberParts> parts = member_->split(recruit(color, key, {}));
    if (!parts) return nullptr;
    return std::make_unique<NcclCommunicator>(std::make_shared<Member>(std::move(*parts)));
  }
  void abort(const Error& error) override { member_->abort(error); }
  [[nodiscard]] std::optional<Error> failure() override { return member_->failure(); }

 private:
  [[nodiscard]] bool takes(DeviceKind) const noexcept override { return true; }
  Work begin(const CollectiveCall& call) override { return member_->start(call); }
  void carry_out(const CollectiveCall& call) override { member_->run(call); }

  std::shared_ptr<Member> member_;
};

}  // namespace cohort::nccl
