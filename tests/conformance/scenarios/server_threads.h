// Parameter servers for lines that need real ones, and where their variables lie.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include <cohort/remote/local_cluster.h>
#include <cohort/server/parameter_server_strategy.h>
#include <cohort/server/sharded_variable.h>
#include <cohort/value/variable.h>

#include "../record.h"
#include "server/client/server_variables.h"
#include "server/server_task.h"

namespace cohort::conformance {

/// The number of servers in `w2/placement/ps_w1_p2/...`.
[[nodiscard]] inline int servers_of(const Record& record) {
  return std::stoi(record.id.substr(record.id.find("_p") + 2));
}

/// Servers in threads of this process, until chief and worker have ended.
class ServerThreads {
 public:
  explicit ServerThreads(int count) : cluster_({{"chief", 1}, {"worker", 1}, {"ps", count}}) {
    for (int id = 0; id < count; ++id) {
      threads_.emplace_back([place = &cluster_.place({"ps", id})] { server::ServerTask(*place, 0).run(); });
    }
  }
  ~ServerThreads() {
    { const ParameterServerStrategy worker(cluster_.place({"worker", 0})); }
    for (std::thread& thread : threads_) thread.join();
  }
  ServerThreads(const ServerThreads&) = delete;
  ServerThreads& operator=(const ServerThreads&) = delete;

  [[nodiscard]] const remote::TaskPlace& chief() const { return cluster_.place({"chief", 0}); }

 private:
  remote::LocalCluster cluster_;
  std::vector<std::thread> threads_;
};

[[nodiscard]] inline int server_of(const Variable& variable) {
  return dynamic_cast<const server::ServerVariable&>(*variable.state()).place().server;
}

/// As [server, rows] of each shard.
[[nodiscard]] inline Json place_of(const std::vector<Variable>& shards) {
  Json places = Json::array();
  for (const Variable& shard : shards) {
    const Shape& shape = shard.shape();
    places.push_back({server_of(shard), shape.rank() == 0 ? Json() : Json(shape[0])});
  }
  return places;
}
[[nodiscard]] inline Json place_of(const Variable& variable) { return place_of(std::vector{variable}); }
[[nodiscard]] inline Json place_of(const ShardedVariable& table) { return place_of(table.variables()); }

}  // namespace cohort::conformance
