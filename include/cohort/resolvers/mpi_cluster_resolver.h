// The cluster as MPI sees it: every rank is a task of the job `worker`, and task 0 is
// the chief.
#pragma once

#include <cohort/cluster/bootstrap.h>
#include <cohort/cluster/cluster_resolver.h>

namespace cohort {

class MpiClusterResolver final : public ClusterResolver {
 public:
  /// `session` is an mpi::Session, and outlives the resolver.
  explicit MpiClusterResolver(Bootstrap& session) : session_(session) {}

  [[nodiscard]] ClusterSpec cluster_spec() const override;
  [[nodiscard]] std::optional<std::string> task_type() const override { return "worker"; }
  [[nodiscard]] std::optional<int> task_id() const override { return session_.rank(); }
  [[nodiscard]] Bootstrap* bootstrap() const override { return &session_; }

 private:
  Bootstrap& session_;
};

}  // namespace cohort
