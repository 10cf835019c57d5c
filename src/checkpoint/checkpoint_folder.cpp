#include <cohort/checkpoint/checkpoint_folder.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "folder.h"
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
  const bool is_number = status == std::errc() && end == digits.data() + digits.size() && step >= 0;
  const bool is_step = is_number && digits == std::to_string(step);  // others would be two of one step
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

std::vector<std::string> checkpoint::find_damage(const std::string& path) {
  std::vector<std::string> problems;
  // A file that is not there is damage; one that cannot be read now is not.
  const auto note = [&](const Error& error, const std::string& file) {
    std::error_code unknown;
    const bool is_missing = !std::filesystem::exists(file, unknown) && !unknown;
    if (!is_missing && (error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kUnimplemented))
      throw_error(error);
    problems.emplace_back(error.what());
  };
  std::optional<Manifest> manifest;
  try {
    manifest = read_manifest(path);
  } catch (const Error& error) {
    note(error, fmt::format("{}/{}", path, kManifestName));
    return problems;
  }
  PieceReader reader(path);
  for (const auto& [name, entry] : manifest->files) {
    const std::string file_path = fmt::format("{}/{}", path, name);
    try {
      const InputFile file(file_path);
      if (file.size() != entry.size)
        problems.push_back(
            fmt::format("'{}' has {} bytes instead of {}", file_path, file.size(), entry.size));
      else if (checksum_of(file) != entry.checksum)
        problems.push_back(fmt::format("'{}' is damaged: its checksum is wrong", file_path));
      else
        continue;
      blame_values(reader, *manifest, name, problems);
    } catch (const Error& error) {
      note(error, file_path);
    }
  }
  return problems;
}

std::vector<std::string> verify_checkpoint(const std::string& path) {
  try {
    return checkpoint::find_damage(path);
  } catch (const Error& error) {
    return {error.what()};
  }
}

}  // namespace cohort
