#include <cohort/checkpoint/checkpoint_folder.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "manifest.h"
#include "piece_reader.h"

namespace cohort {
namespace {

constexpr std::string_view kBeginning = "step-";

/// The step in `step-7`; nothing for other names, as `step-7.unfinished`.
std::optional<std::int64_t> step_in(std::string_view name) {
  if (!name.starts_with(kBeginning)) return std::nullopt;
  const std::string_view digits = name.substr(kBeginning.size());
  std::int64_t step = -1;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool is_step = status == std::errc() && end == digits.data() + digits.size() && step >= 0;
  return is_step ? std::optional(step) : std::nullopt;
}

/// Says what is wrong in words of the values that are damaged, as far as pieces tell.
void blame_values(checkpoint::PieceReader& reader, const checkpoint::Manifest& manifest,
                  const std::string& file, std::vector<std::string>& problems) {
  for (const auto& [name, value] : manifest.values) {
    for (const checkpoint::Piece& piece : value.pieces) {
      if (piece.file != file) continue;
      try {
        reader.check(name, value, piece);
      } catch (const Error& error) {
        problems.emplace_back(error.what());
      }
    }
  }
}

}  // namespace

std::vector<FoundCheckpoint> list_checkpoints(const std::string& folder) {
  std::vector<FoundCheckpoint> found;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return found;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error))
    if (const auto step = step_in(entries->path().filename().string()))
      found.push_back({*step, entries->path().string()});
  if (error) throw Unavailable("cannot read the folder '{}': {}", folder, error.message());
  std::ranges::sort(found, {}, &FoundCheckpoint::step);
  return found;
}

std::vector<std::string> verify_checkpoint(const std::string& path) {
  std::vector<std::string> problems;
  std::optional<checkpoint::Manifest> manifest;
  try {
    manifest = checkpoint::read_manifest(path);
  } catch (const Error& error) {
    return {error.what()};
  }
  checkpoint::PieceReader reader(path);
  for (const auto& [name, entry] : manifest->files) {
    try {
      const checkpoint::InputFile file(fmt::format("{}/{}", path, name));
      if (file.size() != entry.size)
        problems.push_back(
            fmt::format("'{}' has {} bytes instead of {}", file.path(), file.size(), entry.size));
      else if (checkpoint::checksum_of(file) != entry.checksum)
        problems.push_back(fmt::format("'{}' is damaged: its checksum is wrong", file.path()));
      else
        continue;
      blame_values(reader, *manifest, name, problems);
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  return problems;
}

}  // namespace cohort
