// Two tasks of one process: worker 0, which has a server, and the chief, which calls it.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <cohort/remote/local_cluster.h>
#include <cohort/rpc/client.h>
#include <cohort/rpc/server.h>

namespace cohort::rpc {

/// How the two tasks reach each other.
enum class Way { kNode, kNetwork };

inline std::string name_of_way(const testing::TestParamInfo<Way>& info) {
  return info.param == Way::kNode ? "Node" : "Network";
}

inline const ClusterTask kServing{"worker", 0};

/// Before what its methods use is gone.
inline void end(Server& server) {
  server.stop();
  server.join();
}

class Tasks {
 public:
  explicit Tasks(Way way = Way::kNode)
      : cluster_({{"chief", 1}, {"worker", 1}}), calling_(cluster_.place({"chief", 0})) {
    if (way == Way::kNode) return;
    for (remote::Address& address : calling_.addresses) address.local.clear();
  }

  [[nodiscard]] const remote::TaskPlace& serving() const { return cluster_.place(kServing); }
  [[nodiscard]] const remote::TaskPlace& calling() const { return calling_; }
  [[nodiscard]] Client client(const ClientOptions& options = {}) const {
    return Client(calling_, kServing, options);
  }

 private:
  remote::LocalCluster cluster_;
  remote::TaskPlace calling_;
};

}  // namespace cohort::rpc
