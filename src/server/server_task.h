// A task that is a parameter server, from its start to its end.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "server/connections.h"
#include "server/farewells.h"
#include "server/parameter_server.h"
#include "server/step_clock.h"

namespace cohort::server {

class ServerTask final : private TaskPart {
 public:
  /// Goes on from the variables in the place's memory file, if there are any. Variables whose initial values
  /// are missing are waited for until the task that gives them was not there for so long; 0: for ever.
  ServerTask(const remote::TaskPlace& place, double initial_values_timeout_seconds);

  /// Answers requests until the job is over: until chief and workers have said goodbye, or the coordinator
  /// that it is over.
  void run();

 private:
  void on_connected(remote::Peer& peer) override;
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  void look_for_giver();
  void end_step(remote::Peer& peer, const remote::Message& message);
  void take_leave_of(remote::Peer& peer, const remote::Message& message);

  std::unique_ptr<Store> store_;
  ParameterServer server_;
  ClusterTask giver_;  ///< who brings the first values of variables
  bool giver_is_there_ = false;
  std::chrono::duration<double> giver_limit_;
  std::chrono::steady_clock::time_point giver_seen_;  ///< last, or when this server started
  Farewells farewells_;
  StepClock clock_;
  std::map<std::string, const remote::Peer*> latest_;  ///< connection of each task
  std::atomic<bool> over_;
  Connections connections_;
};

}  // namespace cohort::server
