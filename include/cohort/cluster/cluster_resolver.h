// A ClusterResolver answers "where am I in the cluster": the spec of all jobs and
// this process's own task. Strategies ask it once, at construction.
//
// `SimpleClusterResolver` repeats what it was given; resolvers for launchers live in
// `cohort/resolvers/`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <cohort/cluster/cluster_spec.h>

namespace cohort {

class Bootstrap;

class ClusterResolver {
 public:
  /// Whether what `bootstrap()` gives ends with the resolver. Then strategies take no temporary one.
  static constexpr bool kOwnsBootstrap = false;

  virtual ~ClusterResolver() = default;

  [[nodiscard]] virtual ClusterSpec cluster_spec() const = 0;
  [[nodiscard]] virtual std::optional<std::string> task_type() const = 0;
  [[nodiscard]] virtual std::optional<int> task_id() const = 0;

  /// The protocol in front of addresses that `master` returns, for example `grpc`; empty for none.
  [[nodiscard]] virtual std::string rpc_layer() const { return {}; }

  /// The kind of place this cluster runs in, where that matters; empty for none.
  [[nodiscard]] virtual std::string environment() const { return {}; }

  /// How many accelerators a task has, by kind, as far as the resolver knows; for example `{"GPU", 2}`.
  [[nodiscard]] virtual std::map<std::string, int> num_accelerators() const { return {}; }

  /// The address of this process's task. @throws InvalidArgument when the cluster does not have it.
  [[nodiscard]] virtual std::string master() const;

  /// The address of a task, with `rpc_layer()` in front. @throws InvalidArgument for an unknown one.
  [[nodiscard]] virtual std::string master(std::string_view task_type, int task_id) const;

  /// The way to reach the other workers, or null when this resolver only describes them.
  [[nodiscard]] virtual Bootstrap* bootstrap() const { return nullptr; }
};

/// `address` with `layer://` in front, unless there is no layer or no address.
[[nodiscard]] std::string with_rpc_layer(std::string_view layer, std::string_view address);

/// Answers of a SimpleClusterResolver.
struct SimpleClusterOptions {
  std::string master = {};
  std::string environment = {};
  std::map<std::string, int> num_accelerators = {};
  std::string rpc_layer = {};
};

class SimpleClusterResolver final : public ClusterResolver {
 public:
  explicit SimpleClusterResolver(ClusterSpec spec, std::optional<std::string> task_type = {},
                                 std::optional<int> task_id = {}, Bootstrap* bootstrap = nullptr,
                                 SimpleClusterOptions options = {})
      : spec_(std::move(spec)),
        task_type_(std::move(task_type)),
        task_id_(task_id),
        bootstrap_(bootstrap),
        options_(std::move(options)) {}

  [[nodiscard]] ClusterSpec cluster_spec() const override { return spec_; }
  [[nodiscard]] std::optional<std::string> task_type() const override { return task_type_; }
  [[nodiscard]] std::optional<int> task_id() const override { return task_id_; }
  [[nodiscard]] std::string rpc_layer() const override { return options_.rpc_layer; }
  [[nodiscard]] std::string environment() const override { return options_.environment; }
  [[nodiscard]] std::map<std::string, int> num_accelerators() const override {
    return options_.num_accelerators;
  }
  using ClusterResolver::master;
  /// `SimpleClusterOptions::master`.
  [[nodiscard]] std::string master() const override;
  [[nodiscard]] Bootstrap* bootstrap() const override { return bootstrap_; }

 private:
  ClusterSpec spec_;
  std::optional<std::string> task_type_;
  std::optional<int> task_id_;
  Bootstrap* bootstrap_;
  SimpleClusterOptions options_;
};

}  // namespace cohort
