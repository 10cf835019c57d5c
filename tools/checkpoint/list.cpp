#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/checkpoint/checkpoint_folder.h>

#include "checkpoint/format/folder.h"
#include "command.h"

namespace cohort::tool {

int list(const Arguments& arguments) {
  const std::string& folder = arguments.paths.front();
  const std::vector<FoundCheckpoint> checkpoints = list_checkpoints(folder);
  if (checkpoints.empty()) throw InvalidArgument("no checkpoints in '{}'", folder);
  int status = kSound;
  fmt::print("{:>10} {:>8} {:>8} {:>15}  {}\n", "step", "values", "workers", "bytes", "path");
  for (const FoundCheckpoint& found : checkpoints) {
    try {
      const checkpoint::Manifest manifest = checkpoint::read_manifest(found.path);
      fmt::print("{:>10} {:>8} {:>8} {:>15}  {}\n", found.step, manifest.values.size(), manifest.workers,
                 bytes_of(manifest), found.path);
    } catch (const Error& error) {
      const bool is_gone = checkpoint::is_gone(found.path);
      fmt::print("{:>10} {:>8} {:>8} {:>15}  {}\n", found.step, "-", "-", "-",
                 is_gone ? "removed meanwhile" : error.what());
      if (!is_gone) status = kDamaged;
    }
  }
  return status;
}

}  // namespace cohort::tool
