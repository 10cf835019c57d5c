#include "trainer/save_parameters.h"

#include <filesystem>
#include <utility>

#include <cohort/checkpoint/checkpoint_folder.h>

namespace cohort::detail {
namespace {

Checkpoint& with_parameters(Checkpoint& checkpoint, const Training& training) {
  if (training.parameters().empty())
    throw InvalidArgument("there are no parameters to save in this training; set StepFunctions::parameters");
  for (const Variable& parameter : training.parameters()) checkpoint.add(parameter.name(), parameter);
  return checkpoint;
}

}  // namespace

SavedParameters::SavedParameters(const Training& training, std::string folder,
                                 const CheckpointManagerOptions& options)
    : removes_(training.strategy().extended().should_checkpoint()),
      folder_(std::move(folder)),
      checkpoint_(training.strategy()),
      manager_(with_parameters(checkpoint_, training), folder_, options) {}

void SavedParameters::save(std::int64_t step, const Logs& logs) {
  if (removes_)
    for (const FoundCheckpoint& found : list_checkpoints(folder_))
      if (found.step == step) std::filesystem::remove_all(found.path);
  CheckpointMetrics metrics;
  for (const auto& [name, value] : logs) metrics[name] = value;
  manager_.save(step, metrics);
}

}  // namespace cohort::detail
