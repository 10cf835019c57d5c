// A task that is a parameter server, from its start to its end.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "server/client/connections.h"
#include "server/serving/parameter_server.h"
#include "server/serving/task_progress.h"
#include "server/standby/replication.h"

namespace cohort::server {

class ServerTask final : private TaskPart {
 public:
  /// Goes on from the variables in the place's memory file, if there are any. Variables whose initial values
  /// are missing are waited for until the task that gives them was not there for so long; 0: for ever.
  /// `prepared` is what a standby has taken over. A place with a supervisor is that of a server with a
  /// standby.
  ServerTask(const remote::TaskPlace& place, double initial_values_timeout_seconds,
             Preparations prepared = {});

  /// Answers requests until the job is over: until chief and workers have said goodbye, or the coordinator
  /// that it is over. @throws Aborted when the standby has taken over from this server.
  void run();

 private:
  void on_connected(remote::Peer& peer) override;
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  [[nodiscard]] bool is_due() const;
  void look_for_giver();
  void carry_out(remote::Peer& peer, const remote::Message& message);
  void confirm(remote::Peer& peer, const remote::Message& message);
  void end_step(remote::Peer& peer, const remote::Message& message);
  void take_leave_of(remote::Peer& peer, const remote::Message& message);

  std::unique_ptr<Store> store_;
  std::unique_ptr<Replication> replication_;  ///< null: this server has no standby
  ParameterServer server_;
  ClusterTask giver_;  ///< who brings the first values of variables
  bool giver_is_there_ = false;
  std::chrono::duration<double> giver_limit_;
  std::chrono::steady_clock::time_point giver_seen_;  ///< last, or when this server started
  Farewells farewells_;
  StepClock clock_;
  std::map<std::string, const remote::Peer*> latest_;  ///< connection of each task
  std::atomic<bool> over_;
  std::atomic<bool> granted_{false};  ///< the supervisor has said so, and this thread has not heard it
  Connections connections_;
  std::unique_ptr<SupervisorWatch> watch_;  ///< last, so that it ends first
};

}  // namespace cohort::server
