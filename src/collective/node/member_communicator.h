// A Communicator in front of a Member: what node_communicator.h and network_communicator.h
// hand out. Its Works may outlive it, for they co-own the member.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include <cohort/collective/communicator.h>

#include "member.h"

namespace cohort::node {

class MemberCommunicator final : public Communicator {
 public:
  /// `name` must outlive it: a literal.
  MemberCommunicator(std::string_view name, std::shared_ptr<Member> member,
                     const CommunicationOptions& options)
      : Communicator(member->rank(), member->group().members(), options),
        name_(name),
        member_(std::move(member)) {}
  ~MemberCommunicator() override { member_->close(); }

  MemberCommunicator(const MemberCommunicator&) = delete;
  MemberCommunicator& operator=(const MemberCommunicator&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] std::string_view last_algorithm() const noexcept override {
    return member_->last_algorithm();
  }
  void abort(const Error& error) override { member_->abort(error); }

 private:
  Work start(const CollectiveCall& call) override { return member_->start(call); }
  void run(const CollectiveCall& call) override { member_->run(call); }

  std::string_view name_;
  std::shared_ptr<Member> member_;
};

}  // namespace cohort::node
