#include <fmt/format.h>

#include "checkpoint/format/folder.h"
#include "command.h"

namespace cohort::tool {

int show(const Arguments& arguments) {
  const std::string& path = arguments.paths.front();
  const checkpoint::Manifest manifest = checkpoint::read_manifest(path);
  fmt::print("{}: step {}, written by {} worker{}, {} bytes in {} files\n", path, manifest.step,
             manifest.workers, manifest.workers == 1 ? "" : "s", bytes_of(manifest), manifest.files.size());
  for (const auto& [name, value] : manifest.values) {
    const std::string type = fmt::format("{}{}", to_string(value.dtype), to_string(value.shape));
    std::string place = value.pieces.front().file;
    if (value.pieces.size() > 1) place += fmt::format(" and {} more", value.pieces.size() - 1);
    fmt::print("  {:<40} {:<24} {}\n", name, type, place);
  }
  return kSound;
}

}  // namespace cohort::tool
