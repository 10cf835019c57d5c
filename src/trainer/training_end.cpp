#include "trainer/training_end.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/checkpoint/checkpoint_folder.h>

namespace cohort::detail {
namespace {

std::string file_in(const std::string& folder) { return folder + "/training-ended"; }

}  // namespace

void mark_training_end(const std::string& folder, std::int64_t step, std::int64_t max_steps) {
  const std::string file = file_in(folder);
  const std::string unfinished = file + ".new";
  std::ofstream stream(unfinished);
  stream << fmt::format("{} of {}\n", step, max_steps);
  stream.close();
  std::error_code error;
  std::filesystem::rename(unfinished, file, error);
  if (!stream || error) throw Unavailable("train_and_evaluate: '{}' cannot be written", file);
}

bool has_training_ended(const std::string& folder, std::int64_t max_steps) {
  std::ifstream stream(file_in(folder));
  std::int64_t step = 0;
  std::string of;
  std::int64_t steps = 0;
  if (!(stream >> step >> of >> steps) || steps != max_steps) return false;
  // Its last step is saved before the mark is made, so a mark without it is one of a training that was
  // removed.
  const std::vector<FoundCheckpoint> found = list_checkpoints(folder);
  return !found.empty() && found.back().step >= step;
}

}  // namespace cohort::detail
