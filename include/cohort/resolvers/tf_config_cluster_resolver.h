// The cluster that the variable TF_CONFIG describes: a JSON object with `cluster` (see
// cluster_spec_json.h), `task` (`type` and `index`), and perhaps `rpc_layer` and
// `session_master`. Without the variable there is no cluster: a process on its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <cohort/base/environment.h>
#include <cohort/cluster/cluster_resolver.h>

namespace cohort {

/// Options that are given here override the variable.
struct TfConfigOptions {
  std::optional<std::string> task_type = {};
  std::optional<int> task_id = {};
  std::optional<std::string> rpc_layer = {};
  std::string environment = {};
  Bootstrap* bootstrap = nullptr;  ///< the way to reach the other workers, which the variable does not give
};

class TfConfigClusterResolver final : public ClusterResolver {
 public:
  /// Reads the variable once. @throws InvalidArgument naming the place in it that is wrong.
  explicit TfConfigClusterResolver(TfConfigOptions options = {},
                                   const Environment& variables = process_environment());

  [[nodiscard]] ClusterSpec cluster_spec() const override { return spec_; }
  [[nodiscard]] std::optional<std::string> task_type() const override { return options_.task_type; }
  [[nodiscard]] std::optional<int> task_id() const override { return options_.task_id; }
  [[nodiscard]] std::string rpc_layer() const override { return options_.rpc_layer.value_or(""); }
  [[nodiscard]] std::string environment() const override { return options_.environment; }
  /// `session_master` where that is given, whichever task is asked for; empty for a cluster of one task or
  /// none.
  [[nodiscard]] std::string master() const override;
  [[nodiscard]] std::string master(std::string_view task_type, int task_id) const override;
  [[nodiscard]] Bootstrap* bootstrap() const override { return options_.bootstrap; }

 private:
  /// What `master` returns for every task; nothing where each has its own address.
  [[nodiscard]] std::optional<std::string> common_master() const;

  TfConfigOptions options_;
  ClusterSpec spec_;
  std::optional<std::string> session_master_;
};

}  // namespace cohort
