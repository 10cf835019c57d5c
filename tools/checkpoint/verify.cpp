#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/checkpoint/checkpoint_folder.h>

#include "checkpoint/format/folder.h"
#include "command.h"

namespace cohort::tool {
namespace {

int verify_one(const std::string& path) {
  const std::vector<std::string> problems = checkpoint::find_damage(path);
  fmt::print("{}: {}\n", path, problems.empty() ? "sound" : "damaged");
  for (const std::string& problem : problems) fmt::print("  {}\n", problem);
  return problems.empty() ? kSound : kDamaged;
}

}  // namespace

int verify(const Arguments& arguments) {
  const std::string& path = arguments.paths.front();
  const std::vector<FoundCheckpoint> checkpoints = list_checkpoints(path);
  if (checkpoints.empty()) return verify_one(path);
  int status = kSound;
  for (const FoundCheckpoint& found : checkpoints) {
    try {
      status |= verify_one(found.path);
    } catch (const Error& error) {
      const bool is_gone = checkpoint::is_gone(found.path);
      fmt::print("{}: {}\n", found.path, is_gone ? "removed meanwhile" : error.what());
      if (!is_gone) status = kDamaged;
    }
  }
  return status;
}

}  // namespace cohort::tool
