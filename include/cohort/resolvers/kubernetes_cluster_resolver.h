// The cluster formed by the pods of a Kubernetes job. It is read from the list that `kubectl get pods -o
// json` prints or the API server returns: this library talks to no server.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <cohort/base/environment.h>
#include <cohort/cluster/cluster_resolver.h>
#include <cohort/cluster/cluster_roles.h>

namespace cohort {

struct KubernetesOptions {
  /// For each job the label that its pods have, as `key=value`.
  std::map<std::string, std::string, std::less<>> jobs = {{"worker", "job-name=cohort"}};
  int port = 8470;
  std::string rpc_layer = "grpc";
  /// The pod that this process runs in; unset: the variable HOSTNAME.
  std::optional<std::string> own_pod = {};
  Bootstrap* bootstrap = nullptr;  ///< the way to reach the other workers, which the list does not give
};

class KubernetesClusterResolver final : public ClusterResolver {
 public:
  /// Tasks are numbered in the order of their pods' names, `worker-2` before `worker-10`. A process outside
  /// the pods has no task.
  /// @throws InvalidArgument for a list of another form, saying where; Unavailable naming a pod that does not
  /// run, or has no address.
  explicit KubernetesClusterResolver(std::string_view pods, KubernetesOptions options = {},
                                     const Environment& variables = process_environment());

  [[nodiscard]] ClusterSpec cluster_spec() const override { return spec_; }
  [[nodiscard]] std::optional<std::string> task_type() const override;
  [[nodiscard]] std::optional<int> task_id() const override;
  [[nodiscard]] std::string rpc_layer() const override { return options_.rpc_layer; }
  using ClusterResolver::master;
  /// Empty for a process without a task.
  [[nodiscard]] std::string master() const override;
  [[nodiscard]] Bootstrap* bootstrap() const override { return options_.bootstrap; }

 private:
  KubernetesOptions options_;
  ClusterSpec spec_;
  std::optional<ClusterTask> own_;
};

}  // namespace cohort
