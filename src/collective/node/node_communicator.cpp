#include <cohort/collective/node_communicator.h>

#include "member.h"

namespace cohort {
namespace {

class NodeCommunicator final : public Communicator {
 public:
  NodeCommunicator(std::shared_ptr<node::NodeGroup> group, int seat)
      : Communicator(group->rank_of(seat), group->members()),
        member_(std::make_shared<node::Member>(std::move(group), seat)) {}
  ~NodeCommunicator() override { member_->close(); }

  NodeCommunicator(const NodeCommunicator&) = delete;
  NodeCommunicator& operator=(const NodeCommunicator&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return "node"; }
  [[nodiscard]] std::string_view last_algorithm() const noexcept override {
    return member_->last_algorithm();
  }
  void abort(const Error& error) override { member_->abort(error); }

 private:
  Work start(const CollectiveCall& call) override { return member_->start(call); }
  void run(const CollectiveCall& call) override { member_->run(call); }

  std::shared_ptr<node::Member> member_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_node_communicators(const NodeGroupOptions& options) {
  const auto group = std::make_shared<node::NodeGroup>(options);
  std::vector<std::unique_ptr<Communicator>> seats;
  seats.reserve(static_cast<std::size_t>(options.members));
  for (int member = 0; member < options.members; ++member)
    seats.push_back(std::make_unique<NodeCommunicator>(group, group->first_own_seat() + member));
  return seats;
}

}  // namespace cohort
