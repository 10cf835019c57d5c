// An mpi::Session makes this process a worker: it initialises MPI (or takes it over if the program already
// did), finds out which workers share its node, and implements Bootstrap. Make one, first thing in `main`,
// and keep it until the end.
//
// The Session also watches the other workers over a side channel that is not MPI,
// since MPI reports neither dead peers nor cut links. When one is lost, pending and
// later collectives throw Unavailable naming it, and a process that has not ended
// COHORT_FAULT_GRACE_SECONDS later is ended.
//
// At the end of a good run the destructor waits for all workers and finalises MPI; after the failure of a
// communicator it waits no longer than COHORT_COLLECTIVE_TIMEOUT_SECONDS.
// When an exception leaves `main`, the job ends at once on all ranks, with a message; so it does when
// the program calls `exit` while the Session lives.
//
// A forked child is no worker, and its copy of the Session does nothing. End it by `exec` or `_exit`, since
// it has none of the threads of the parent's strategies and datasets.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/bootstrap.h>
#include <cohort/collective/tuning.h>

namespace cohort::mpi {

class Session final : public Bootstrap {
 public:
  /// @throws Unavailable when MPI cannot be initialised, InvalidArgument for a wrong setting,
  /// WrongContext when another Session of this process is alive or MPI was finalised already.
  Session(int& argc, char**& argv);
  Session();
  ~Session() override;

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] std::span<const WorkerInfo> workers() const override;
  [[nodiscard]] int rank() const override;
  [[nodiscard]] std::vector<std::string> exchange(std::string_view blob) override;
  [[nodiscard]] std::unique_ptr<Communicator> make_communicator(const CommunicationOptions& options) override;

  /// @throws WrongContext, on all workers, where members on several nodes need an MPI that any thread may
  /// call.
  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_communicators(
      const CommunicationOptions& options, int members) override;

  [[nodiscard]] std::unique_ptr<Bootstrap> split(int color, int key) override;

  /// The figures by which this worker's collectives choose their algorithms; probed now if they are not
  /// known. Collective; workers of different nodes may use different figures for their nodes.
  [[nodiscard]] std::vector<TuningFigure> tuning();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The MPI library's own name and version in one line, for example `Open MPI v4.1.4, ...`; needs no Session.
[[nodiscard]] std::string library_version();

}  // namespace cohort::mpi
