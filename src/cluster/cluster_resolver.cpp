#include <cohort/cluster/cluster_resolver.h>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort {

std::string with_rpc_layer(std::string_view layer, std::string_view address) {
  if (layer.empty() || address.empty()) return std::string(address);
  return fmt::format("{}://{}", layer, address);
}

std::string ClusterResolver::master() const {
  const std::optional<std::string> type = task_type();
  const std::optional<int> id = task_id();
  if (!type || !id) throw InvalidArgument("the cluster resolver does not say which task this process is");
  return master(*type, *id);
}

std::string ClusterResolver::master(std::string_view task_type, int task_id) const {
  return with_rpc_layer(rpc_layer(), cluster_spec().task_address(task_type, task_id));
}

std::string SimpleClusterResolver::master() const {
  return with_rpc_layer(options_.rpc_layer, options_.master);
}

}  // namespace cohort
