// A cluster whose workers each run a loop of their own, as the lines of `ps_v1` were recorded with. This
// process plays all workers, in turn; the chief takes the place of worker 0, since it brings the initial
// values.
#pragma once

#include <vector>

#include <cohort/server/parameter_server_strategy.h>

#include "../scenario.h"
#include "remote/task_processes.h"

namespace cohort::conformance {

class TrainingTasks {
 public:
  /// One or two workers.
  TrainingTasks(int workers, int servers);

  [[nodiscard]] const std::vector<ParameterServerStrategy>& workers() const noexcept { return workers_; }
  [[nodiscard]] int servers() const noexcept { return servers_; }

  /// A variable as each worker knows it: all make the same ones, in the same order.
  [[nodiscard]] std::vector<Variable> make(const VariableOptions& options) const;

 private:
  int servers_;
  remote::TaskProcesses processes_;
  std::vector<ParameterServerStrategy> workers_;
};

/// The lines of strategies that cannot be made, and of one without servers.
[[nodiscard]] std::vector<Family> training_constructor_families();
[[nodiscard]] std::vector<Family> training_property_families(const TrainingTasks& tasks);
[[nodiscard]] std::vector<Family> training_step_families(const TrainingTasks& tasks);

}  // namespace cohort::conformance
