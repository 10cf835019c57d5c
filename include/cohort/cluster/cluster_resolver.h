// A ClusterResolver answers "where am I in the cluster": the spec of all jobs and
// this process's own task. Strategies ask it once, at construction.
//
// `SimpleClusterResolver` repeats what it was given; resolvers for launchers live in
// `cohort/launch/`.
#pragma once

#include <optional>
#include <string>

#include <cohort/cluster/cluster_spec.h>

namespace cohort {

class Bootstrap;

class ClusterResolver {
 public:
  virtual ~ClusterResolver() = default;

  [[nodiscard]] virtual ClusterSpec cluster_spec() const = 0;
  [[nodiscard]] virtual std::optional<std::string> task_type() const = 0;
  [[nodiscard]] virtual std::optional<int> task_id() const = 0;

  /// The way to reach the other workers, or null when this resolver only describes them.
  [[nodiscard]] virtual Bootstrap* bootstrap() const { return nullptr; }
};

class SimpleClusterResolver final : public ClusterResolver {
 public:
  explicit SimpleClusterResolver(ClusterSpec spec, std::optional<std::string> task_type = {},
                                 std::optional<int> task_id = {}, Bootstrap* bootstrap = nullptr)
      : spec_(std::move(spec)), task_type_(std::move(task_type)), task_id_(task_id), bootstrap_(bootstrap) {}

  [[nodiscard]] ClusterSpec cluster_spec() const override { return spec_; }
  [[nodiscard]] std::optional<std::string> task_type() const override { return task_type_; }
  [[nodiscard]] std::optional<int> task_id() const override { return task_id_; }
  [[nodiscard]] Bootstrap* bootstrap() const override { return bootstrap_; }

 private:
  ClusterSpec spec_;
  std::optional<std::string> task_type_;
  std::optional<int> task_id_;
  Bootstrap* bootstrap_;
};

}  // namespace cohort
