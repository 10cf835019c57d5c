// cohort-checkpoint: looks at checkpoints, and verifies them.
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/checkpoint/checkpoint_folder.h>

#include "checkpoint/manifest.h"

namespace cohort {
namespace {

constexpr int kSound = 0;
constexpr int kDamaged = 1;
constexpr int kWrongUse = 2;

constexpr std::string_view kUsage =
    R"(usage: cohort-checkpoint list FOLDER      the checkpoints in a folder
       cohort-checkpoint show CHECKPOINT  the values of a checkpoint, as checkpoints/step-100
       cohort-checkpoint verify PATH      reads every byte of a checkpoint, or of all in a folder

Exit code: 0; 1 if a checkpoint is damaged or cannot be read, or there is none; 2 for wrong use.
)";

std::uint64_t bytes_of(const checkpoint::Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& [name, file] : manifest.files) bytes += file.size;
  return bytes;
}

int list(const std::string& folder) {
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
      fmt::print("{:>10} {:>8} {:>8} {:>15}  {}\n", found.step, "-", "-", "-", error.what());
      status = kDamaged;
    }
  }
  return status;
}

int show(const std::string& path) {
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

int verify(const std::string& path) {
  std::vector<std::string> paths;
  for (const FoundCheckpoint& found : list_checkpoints(path)) paths.push_back(found.path);
  if (paths.empty()) paths.push_back(path);
  int status = kSound;
  for (const std::string& each : paths) {
    const std::vector<std::string> problems = verify_checkpoint(each);
    fmt::print("{}: {}\n", each, problems.empty() ? "sound" : "damaged");
    for (const std::string& problem : problems) fmt::print("  {}\n", problem);
    if (!problems.empty()) status = kDamaged;
  }
  return status;
}

int run(const std::vector<std::string>& arguments) {
  const std::map<std::string, int (*)(const std::string&)> commands{
      {"list", &list}, {"show", &show}, {"verify", &verify}};
  if (arguments.size() == 1 && (arguments[0] == "--help" || arguments[0] == "-h")) {
    fmt::print("{}", kUsage);
    return kSound;
  }
  const auto command = arguments.size() == 2 ? commands.find(arguments[0]) : commands.end();
  if (command == commands.end()) {
    fmt::print(stderr, "{}", kUsage);
    return kWrongUse;
  }
  try {
    return command->second(arguments[1]);
  } catch (const Error& error) {
    fmt::print(stderr, "cohort-checkpoint: {}\n", error.what());
    return kDamaged;
  }
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) { return cohort::run({argv + 1, argv + argc}); }
