// The cluster of a job that `cohort-run --roles` has started. Its tasks are processes that may end and be
// started again; they are no MPI processes, and there is no Bootstrap between them. They reach each other by
// what `place()` says.
//
//     TaskClusterResolver resolver;
//     if (resolver.task_type() == "ps") ...
#pragma once

#include <optional>
#include <string>

#include <cohort/base/environment.h>
#include <cohort/cluster/cluster_resolver.h>
#include <cohort/remote/task_place.h>

namespace cohort {

class TaskClusterResolver final : public ClusterResolver {
 public:
  /// Reads the card that the process has inherited, as often as one likes. Programs that this process starts
  /// from then on do not inherit it.
  /// @throws InvalidArgument when `cohort-run --roles` has not started this process, saying how to start it,
  /// and when what was inherited has been closed, or is no card.
  explicit TaskClusterResolver(const Environment& variables = process_environment());

  [[nodiscard]] ClusterSpec cluster_spec() const override { return remote::cluster_spec(place_); }
  [[nodiscard]] std::optional<std::string> task_type() const override { return place_.task.type; }
  [[nodiscard]] std::optional<int> task_id() const override { return place_.task.id; }

  /// Its descriptors are open until the process ends, or whoever takes them over closes them.
  [[nodiscard]] const remote::TaskPlace& place() const& noexcept { return place_; }
  [[nodiscard]] remote::TaskPlace place() && noexcept { return std::move(place_); }

 private:
  remote::TaskPlace place_;
};

}  // namespace cohort
