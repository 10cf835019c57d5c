// A rendezvous::Session makes this process a worker of a cluster that has no MPI. All it needs is a Store, by
// which the workers find each other: for processes that torchrun or another program has started, and for
// libraries within a program that is not theirs. It implements Bootstrap.
//
// The start costs one worker, the first, three operations of the store (get, set, erase), and each other one
// two (wait, get). Everything else goes over sockets between the workers, which prove to each other that they
// know a secret from the store: whoever can read the store can join.
//
// A Session leaves its process alone: it handles no signals, ends no process, and binds no cores. A worker
// that dies is noticed within milliseconds, one that cannot be reached within COHORT_SILENCE_SECONDS; then
// pending and later calls of the others throw Unavailable, which names it.
//
// A process may have several, one after the other or at once. Those that are made with the same store differ
// in their prefix. Any thread may use a Session, one at a time; its groups may be used by others.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/cluster/bootstrap.h>
#include <cohort/rendezvous/store.h>

namespace cohort::rendezvous {

struct SessionOptions {
  std::shared_ptr<Store> store = {};

  /// Before all keys. Another one for each Session over the same store, and, where workers are started again,
  /// for each generation of them.
  std::string prefix = "cohort/";
  int rank = 0;
  int size = 1;  ///< the same on all workers

  /// What messages call this host. Workers with the same name on the same machine share a node if they can
  /// reach each other's memory. Empty: the name that the system has.
  std::string host = {};

  /// For the start, and for each exchange afterwards; for ever when zero.
  std::chrono::duration<double> timeout{300};

  /// Whether what COHORT_TIMELINE, COHORT_RUN_NUMBERS, COHORT_PROMETHEUS and COHORT_STRAGGLERS ask for, and
  /// `cohort-info --job`, is about the calls of all workers in this Session, also in groups of all of them in
  /// the order of their ranks; for one Session of a process.
  bool observed = true;
  /// Whether the observed calls are looked through for workers that make others wait, where COHORT_STRAGGLERS
  /// does not say so.
  bool names_stragglers = true;

  /// How long a worker may stay without a heartbeat before it counts as lost; for ever when zero. Unset:
  /// COHORT_SILENCE_SECONDS. The same on all workers. One whose process has ended is noticed in any case.
  std::optional<std::chrono::duration<double>> silence = {};

  /// How long the end of a Session waits, in a worker that passes on whether others live, until these have
  /// ended theirs. Then nobody watches them any more.
  std::chrono::milliseconds leave_timeout{5000};
};

/// Some workers of a Session as a cluster of their own. The watch over the workers is that of the Session,
/// which ends once the Session and all its groups are destroyed, in any order.
class Group : public Bootstrap {
 public:
  /// A cluster of the workers `ranks` of this one, in this order.
  /// Only its members call it, with the same arguments. Their name for it is unlike that of every other group
  /// of the Session that has a member in common with it.
  /// @throws InvalidArgument when ranks are none of this cluster, come twice, or leave this worker out, and
  /// on all members when they pass different ranks; DeadlineExceeded naming those that did not come.
  [[nodiscard]] virtual std::unique_ptr<Group> make_group(std::span<const int> ranks,
                                                          std::string_view name) = 0;

  /// The loss of a worker of the Session, or null; stays valid for as long as the Session or a group. A call
  /// of a communicator may fail by the loss some milliseconds earlier: another worker has told it.
  [[nodiscard]] virtual const Error* fault() const noexcept = 0;
};

class Session final : public Group {
 public:
  /// Collective over all workers.
  /// @throws DeadlineExceeded naming the workers that did not come, InvalidArgument, on all of them, when
  /// they do not run the same version of Cohort, have different sizes or settings, or two have the same rank,
  /// Unavailable when one is lost.
  explicit Session(SessionOptions options);

  /// Does not wait for workers that go on, but for those that this one watches for others, and for these no
  /// longer than `leave_timeout`. In a process that was forked from the worker it does nothing.
  ~Session() override;

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] std::span<const WorkerInfo> workers() const override;
  [[nodiscard]] int rank() const override;
  [[nodiscard]] std::vector<std::string> exchange(std::string_view blob) override;
  [[nodiscard]] std::unique_ptr<Communicator> make_communicator(const CommunicationOptions& options) override;

  /// Between nodes they use TCP connections, each between two members.
  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_communicators(
      const CommunicationOptions& options, int members) override;
  [[nodiscard]] std::unique_ptr<Bootstrap> split(int color, int key) override;
  [[nodiscard]] std::unique_ptr<Group> make_group(std::span<const int> ranks, std::string_view name) override;
  [[nodiscard]] const Error* fault() const noexcept override;

 private:
  std::unique_ptr<Group> everyone_;
};

}  // namespace cohort::rendezvous
