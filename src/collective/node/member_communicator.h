// A Communicator in front of a Member: what node_communicator.h and network_communicator.h
// hand out. Its Works may outlive it, for they co-own the member.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/collective/communicator.h>

#include "member.h"

namespace cohort::node {

class MemberCommunicator final : public Communicator {
 public:
  MemberCommunicator(std::shared_ptr<Member> member, const CommunicationOptions& options)
      : Communicator(member->rank(), member->group().members(), options), member_(std::move(member)) {}
  ~MemberCommunicator() override { member_->close(); }

  MemberCommunicator(const MemberCommunicator&) = delete;
  MemberCommunicator& operator=(const MemberCommunicator&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override {
    return member_->reaches_other_nodes() ? "network" : "node";
  }
  [[nodiscard]] std::string_view last_algorithm() const noexcept override {
    return member_->last_algorithm();
  }
  [[nodiscard]] std::string_view last_choice() const noexcept override { return member_->last_choice(); }
  [[nodiscard]] std::vector<TuningFigure> tuning() const override { return member_->tuning(); }
  [[nodiscard]] std::unique_ptr<Communicator> split(std::optional<int> color, int key) override {
    std::optional<NewControlBlock> block;
    Brought brought;
    if (color) {
      block.emplace(member_->group().is_one_process());
      brought = {block->location(), member_->group_offer()};
    }
    const std::vector<Recruit> recruits = recruit(color, key, brought);
    if (!block) return nullptr;
    return std::make_unique<MemberCommunicator>(member_->split(recruits, std::move(*block)), options());
  }
  void abort(const Error& error) override { member_->abort(error); }
  [[nodiscard]] std::optional<Error> failure() override { return member_->failure(); }

 private:
  Work begin(const CollectiveCall& call) override { return member_->start(call); }
  void carry_out(const CollectiveCall& call) override { member_->run(call); }

  std::shared_ptr<Member> member_;
};

}  // namespace cohort::node
