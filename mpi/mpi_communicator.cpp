#include "mpi_communicator.h"

#include <algorithm>

namespace cohort::mpi {
namespace {

class InFlight final : public Work::State {
 public:
  InFlight(std::shared_ptr<Group> group, std::shared_ptr<Operation> operation)
      : group_(std::move(group)), operation_(std::move(operation)) {}

  void wait() override { group_->wait(*operation_); }
  [[nodiscard]] bool done() noexcept override { return group_->done(*operation_); }

 private:
  std::shared_ptr<Group> group_;
  std::shared_ptr<Operation> operation_;
};

}  // namespace

MpiCommunicator::MpiCommunicator(std::shared_ptr<Runtime> runtime, MPI_Comm comm, int rank,
                                 std::vector<MemberInfo> members, const CommunicationOptions& options)
    : CommunicatorBase(rank, members, options),
      group_(std::make_shared<Group>(std::move(runtime), comm, rank, std::move(members), options)) {}

void MpiCommunicator::wait_for_all() { barrier({.timeout_seconds = 0}); }

std::unique_ptr<Communicator> MpiCommunicator::split(std::optional<int> color, int key) {
  std::vector<int> ranks;
  std::vector<MemberInfo> infos;
  for (const SplitMember& member : exchange_split(color, key, {})) {
    ranks.push_back(member.rank);
    infos.push_back(members()[static_cast<std::size_t>(member.rank)]);
  }
  if (ranks.empty()) return nullptr;
  const auto own = static_cast<int>(std::ranges::find(ranks, rank()) - ranks.begin());
  return std::unique_ptr<Communicator>(
      new MpiCommunicator(own, infos, group_->split(ranks, own, infos), options()));
}

Work MpiCommunicator::begin(const CollectiveCall& call) {
  return Work(std::make_shared<InFlight>(group_, group_->start(call)));
}

void MpiCommunicator::execute(const CollectiveCall& call) { group_->wait(*group_->start(call)); }

}  // namespace cohort::mpi
