#include "training_tasks.h"

namespace cohort::conformance {

TrainingTasks::TrainingTasks(int workers, int servers) : servers_(servers), processes_(0, servers) {
  workers_.emplace_back(processes_.chief());
  for (int worker = 1; worker < workers; ++worker)
    workers_.emplace_back(processes_.place({"worker", worker - 1}));
}

std::vector<Variable> TrainingTasks::make(const VariableOptions& options) const {
  std::vector<Variable> variables;
  for (const ParameterServerStrategy& worker : workers_) {
    const auto scope = worker.scope();
    variables.emplace_back(options);
  }
  return variables;
}

}  // namespace cohort::conformance
