// The roles of the ranks: all of them train, or one evaluates the others' model.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include <cohort/collective/communicator.h>
#include <cohort/resolvers/role_cluster_resolver.h>
#include <cohort/value/variable.h>

namespace digits {

class Roles {
 public:
  /// `list` has the form of RoleClusterResolver's; `TF_CONFIG` takes each process's role from that variable;
  /// empty: all train. Collective; the session outlives the roles.
  /// @throws UsageError, on all ranks, for roles that do not fit the job.
  Roles(cohort::Bootstrap& session, const std::string& list);

  /// The tasks of this job, or null where all train.
  [[nodiscard]] const cohort::ClusterResolver* resolver() const { return resolver_ ? &*resolver_ : nullptr; }
  [[nodiscard]] bool evaluates() const { return resolver_ && resolver_->task_type() == "evaluator"; }
  /// Whether this is the first of the ranks that train, which reports.
  [[nodiscard]] bool is_chief() const { return is_chief_; }

  /// Copies the chief's parameters, and the number of its epoch, to the evaluator, which waits for them; the
  /// others go on. Does nothing without an evaluator. Returns the number.
  int hand_over(std::span<const cohort::Variable> parameters, int epoch) const;

 private:
  std::optional<cohort::RoleClusterResolver> resolver_;
  bool is_chief_ = false;
  std::unique_ptr<cohort::Bootstrap> pair_;  ///< chief and evaluator
  std::unique_ptr<cohort::Communicator> way_to_evaluator_;
};

}  // namespace digits
