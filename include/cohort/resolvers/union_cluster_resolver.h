// Several resolvers as one: the union of their clusters. Properties that a cluster has only once (task,
// protocol, environment, accelerators, master, bootstrap) come from the first one.
#pragma once

#include <memory>
#include <vector>

#include <cohort/cluster/cluster_resolver.h>

namespace cohort {

/// Options that are given here override the first resolver.
struct UnionClusterOptions {
  std::optional<std::string> task_type = {};
  std::optional<int> task_id = {};
  std::optional<std::string> rpc_layer = {};
};

class UnionClusterResolver final : public ClusterResolver {
 public:
  static constexpr bool kOwnsBootstrap = true;  // as the resolvers do that it owns

  /// @throws InvalidArgument for no resolvers.
  explicit UnionClusterResolver(std::vector<std::shared_ptr<const ClusterResolver>> resolvers,
                                UnionClusterOptions options = {});

  /// Jobs whose tasks have no gaps in any of the clusters are appended and numbered anew; otherwise tasks
  /// keep their indices. @throws InvalidArgument when two clusters then have the same task.
  [[nodiscard]] ClusterSpec cluster_spec() const override;
  [[nodiscard]] std::optional<std::string> task_type() const override;
  [[nodiscard]] std::optional<int> task_id() const override;
  [[nodiscard]] std::string rpc_layer() const override;
  [[nodiscard]] std::string environment() const override { return first().environment(); }
  [[nodiscard]] std::map<std::string, int> num_accelerators() const override {
    return first().num_accelerators();
  }
  using ClusterResolver::master;
  [[nodiscard]] std::string master() const override { return first().master(); }
  [[nodiscard]] Bootstrap* bootstrap() const override { return first().bootstrap(); }

 private:
  [[nodiscard]] const ClusterResolver& first() const { return *resolvers_.front(); }

  std::vector<std::shared_ptr<const ClusterResolver>> resolvers_;
  UnionClusterOptions options_;
};

}  // namespace cohort
