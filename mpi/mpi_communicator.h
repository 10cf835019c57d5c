// A Communicator whose members are processes and whose data is moved by MPI's own
// collectives. Before each of them the members agree on the call, and none waits inside
// MPI, so that differing calls, late members and lost workers end in errors that say so.
//
// Asynchronous calls make progress while somebody waits for, or asks about, any call of
// the same communicator.
#pragma once

#include <memory>

#include <cohort/collective/communicator_base.h>

#include "group.h"

namespace cohort::mpi {

class MpiCommunicator final : public CommunicatorBase {
 public:
  /// Collective over `comm`, and blocks in MPI: all members must be known to be here.
  MpiCommunicator(std::shared_ptr<Runtime> runtime, MPI_Comm comm, int rank, std::vector<MemberInfo> members,
                  const CommunicationOptions& options);

  [[nodiscard]] std::string_view name() const noexcept override { return "mpi"; }
  /// Blocks in MPI once all members are known to be here.
  [[nodiscard]] std::unique_ptr<Communicator> split(std::optional<int> color, int key) override;
  void abort(const Error& error) override { group_->abort(error); }
  [[nodiscard]] std::optional<Error> failure() override { return group_->failure(); }

  /// A barrier without a deadline of its own.
  void wait_for_all();

 protected:
  Work begin(const CollectiveCall& call) override;
  void execute(const CollectiveCall& call) override;

 private:
  MpiCommunicator(int rank, std::vector<MemberInfo> members, std::shared_ptr<Group> group,
                  const CommunicationOptions& options)
      : CommunicatorBase(rank, std::move(members), options), group_(std::move(group)) {}

  std::shared_ptr<Group> group_;
};

}  // namespace cohort::mpi
