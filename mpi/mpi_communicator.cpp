#include "mpi_communicator.h"

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
    : Communicator(rank, members, options),
      group_(std::make_shared<Group>(std::move(runtime), comm, rank, std::move(members))) {}

void MpiCommunicator::wait_for_all() { group_->wait(*group_->start(CollectiveCall{}, Deadline::never())); }

Work MpiCommunicator::start(const CollectiveCall& call) {
  return Work(std::make_shared<InFlight>(group_, group_->start(call)));
}

void MpiCommunicator::run(const CollectiveCall& call) { group_->wait(*group_->start(call)); }

}  // namespace cohort::mpi
