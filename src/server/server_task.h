// A task that is a parameter server, from its start to its end.
#pragma once

#include <atomic>
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
  /// Goes on from the variables in the place's memory file, if there are any.
  explicit ServerTask(const remote::TaskPlace& place);

  /// Answers requests until the job is over: until chief and workers have said goodbye, or the coordinator
  /// that it is over.
  void run();

 private:
  void on_connected(remote::Peer& peer) override;
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  void end_step(remote::Peer& peer, const remote::Message& message);
  void take_leave_of(remote::Peer& peer, const remote::Message& message);

  std::unique_ptr<Store> store_;
  ParameterServer server_;
  ClusterTask giver_;  ///< who brings the first values of variables
  StepClock clock_;
  Farewells farewells_;
  std::map<std::string, const remote::Peer*> latest_;  ///< connection of each task
  std::atomic<bool> over_;
  Connections connections_;
};

}  // namespace cohort::server
