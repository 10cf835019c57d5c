// The commands that read checkpoints and print what they find: list, show, verify and diff.

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/device/tensor.h>

#include "checkpoint/format/folder.h"
#include "command.h"

namespace cohort::tool {
namespace {

using checkpoint::Manifest;
using checkpoint::PieceReader;
using checkpoint::ValueEntry;

int verify_one(const std::string& path) {
  const std::vector<std::string> problems = checkpoint::find_damage(path);
  fmt::print("{}: {}\n", path, problems.empty() ? "sound" : "damaged");
  for (const std::string& problem : problems) fmt::print("  {}\n", problem);
  return problems.empty() ? kSound : kDamaged;
}

std::string type_of(const ValueEntry& value) {
  return fmt::format("{}{}", to_string(value.dtype), to_string(value.shape));
}

/// How two values of one type differ, in words; empty if all their bits are equal.
std::string difference(const Tensor& a, const Tensor& b) {
  const std::size_t size = size_of(a.dtype());
  const Tensor wide_a = a.cast(DType::kFloat64);
  const Tensor wide_b = b.cast(DType::kFloat64);
  const auto numbers_a = wide_a.span<double>();
  const auto numbers_b = wide_b.span<double>();
  std::size_t differing = 0;
  double largest = 0;
  for (std::size_t i = 0; i < a.elements(); ++i) {
    if (std::memcmp(a.raw().data() + i * size, b.raw().data() + i * size, size) == 0) continue;
    ++differing;
    const double distance = std::abs(numbers_a[i] - numbers_b[i]);
    // From NaN, the distance is NaN, which stays the largest.
    if (std::isnan(distance) || distance > largest) largest = distance;
  }
  if (differing == 0) return "";
  return fmt::format("{} of {} elements differ, by at most {:.6g}", differing, a.elements(), largest);
}

}  // namespace

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

int diff(const Arguments& arguments) {
  const std::string& path_a = arguments.paths[0];
  const std::string& path_b = arguments.paths[1];
  const Manifest a = checkpoint::read_manifest(path_a);
  const Manifest b = checkpoint::read_manifest(path_b);
  PieceReader reader_a(path_a);
  PieceReader reader_b(path_b);
  bool differs = false;
  const auto say = [&](const std::string& name, const std::string& what) {
    if (what.empty()) return;
    fmt::print("{}: {}\n", name, what);
    differs = true;
  };
  for (const auto& [name, value] : a.values) {
    const auto other = b.values.find(name);
    if (other == b.values.end())
      say(name, fmt::format("only in {}", path_a));
    else if (type_of(value) != type_of(other->second))
      say(name, fmt::format("{} in {} and {} in {}", type_of(value), path_a, type_of(other->second), path_b));
    else
      say(name, difference(reader_a.read(name, value), reader_b.read(name, other->second)));
  }
  for (const auto& [name, value] : b.values)
    if (!a.values.contains(name)) say(name, fmt::format("only in {}", path_b));
  return differs ? 1 : 0;
}

}  // namespace cohort::tool
