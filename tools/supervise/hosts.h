// The supervisors of a job, one per host, as one of them sees the others: how they meet at the start, and
// what they tell each other. The first one leads: it hears how tasks end for good, and says when the others
// are to end theirs. What servers and their standbys say to their supervisor, and hear from it, goes by it,
// too. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cohort/remote/endpoint.h>

#include "job.h"
#include "remote/supervised_task.h"

namespace cohort::supervise {

/// What the tasks that still run are to do.
enum class Phase : int {
  kRunning,  ///< go on
  kOver,     ///< end by themselves soon, for nobody needs them any more
  kFailed,   ///< end at once
};

/// A word of a server's line to its supervisor, or for it.
struct ServerWord {
  int server = 0;  ///< index of the `ps`
  remote::SupervisorWord word = {};
  std::uint64_t number = 0;  ///< of a question and of its answer
};

/// What comes from the others, inside `Hosts::poll`.
class HostEvents {
 public:
  virtual ~HostEvents() = default;
  virtual void on_task_end(int host, const ClusterTask& task, const Ending& ending) = 0;
  virtual void on_phase(Phase phase) = 0;
  virtual void on_server_word(int host, const ServerWord& word) = 0;
  /// A supervisor has ended, or cannot be reached any more; `why` says so in a sentence.
  virtual void on_host_lost(int host, const std::string& why) = 0;
};

struct HostsOptions {
  int host = 0;                                   ///< this one
  std::vector<remote::Address> supervisors = {};  ///< of all hosts
  std::string secret = {};
  remote::TaskListeners listeners = {};  ///< this supervisor's own
};

/// The job that a supervisor at that address has in the cluster of supervisors.
inline constexpr const char* kSupervisorJob = "supervisor";

class Hosts final : public remote::Handler {
 public:
  /// Connects to the first supervisor; returns when all have done so.
  /// @throws Unavailable naming one that does not come, or is lost meanwhile.
  explicit Hosts(HostsOptions options);
  ~Hosts() override;
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  /// Tells the one that leads.
  void report_end(const ClusterTask& task, const Ending& ending);

  /// Tells all that are led.
  void announce(Phase phase);

  /// To the supervisor of that host, if there still is one.
  void tell(int host, const ServerWord& word);

  /// As messages call that host.
  [[nodiscard]] const std::string& name_of(int host) const;

  /// How many of the others there still are: those that are led, or the one that leads.
  [[nodiscard]] int connected() const noexcept;

  /// Hands over what has come, without waiting.
  void poll(HostEvents& events);

 private:
  void gather_all(Deadline deadline);
  void join(Deadline deadline);
  void on_connected(remote::Peer& peer) override;
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  HostsOptions options_;
  std::vector<remote::Peer*> peers_;  ///< by host; null where there is no connection
  bool all_are_here_ = false;         ///< who leads has said so
  HostEvents* events_ = nullptr;      ///< of the call of `poll` that goes on
  std::unique_ptr<remote::Endpoint> endpoint_;
};

/// What a supervisor needs beside its command line: which tasks are its own, where all tasks listen, and
/// where the other supervisors are.
struct Team {
  int host = 0;                                       ///< this one's number
  std::vector<int> hosts = {};                        ///< on which host each task runs
  std::vector<int> standby_hosts = {};                ///< and its standby, or kNoHost
  std::vector<remote::Address> addresses = {};        ///< of all tasks; of a `ps` with those of its standby
  std::vector<remote::TaskListeners> listeners = {};  ///< of the tasks of this host, in their order
  std::vector<remote::TaskListeners> listeners_of_standbys = {};  ///< of this host
  std::string secret = {};
  std::optional<HostsOptions> others = {};  ///< how to reach them; nothing where there is one host
};

/// One host, whose tasks listen there alone.
[[nodiscard]] Team team_of_one(const std::vector<ClusterTask>& tasks);

/// The supervisors that an MPI launcher has started. MPI serves to exchange addresses and the secret; it is
/// not used afterwards. With 2 `copies` servers have standbys. Collective.
/// @throws InvalidArgument when they have other tasks; Unavailable when one of them is lost.
[[nodiscard]] Team meet(int& argc, char**& argv, const std::vector<ClusterTask>& tasks, int copies);

}  // namespace cohort::supervise
