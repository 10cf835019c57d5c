#include <cohort/checkpoint/checkpoint_folder.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "base/json.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"

namespace cohort {
namespace {

/// What is wrong with a file as a whole; nothing if it is as it was written.
std::optional<std::string> damage_of(const std::string& path, const checkpoint::FileEntry& entry) {
  const checkpoint::InputFile file(path);
  if (file.size() != entry.size)
    return fmt::format("'{}' has {} bytes instead of {}", path, file.size(), entry.size);
  if (checkpoint::checksum_of(file) != entry.checksum)
    return fmt::format("'{}' is damaged: its checksum is wrong", path);
  return std::nullopt;
}

/// Says what is wrong in words of the values in `file`, as far as pieces tell. Elements of a sound file need
/// not be read again.
void check_values(checkpoint::PieceReader& reader, const checkpoint::Manifest& manifest,
                  const std::string& file, bool is_sound, std::vector<std::string>& problems) {
  for (const auto& [name, value] : manifest.values) {
    for (const checkpoint::Piece& piece : value.pieces) {
      if (piece.file != file) continue;
      try {
        if (is_sound)
          reader.locate(name, value, piece);
        else
          reader.check(name, value, piece);
      } catch (const DataLoss& error) {
        problems.emplace_back(error.what());
      }
    }
  }
}

/// @throws DataLoss for an index by which readers of safetensors find other tensors than the manifest has.
void compare_index(const std::string& path, const checkpoint::Manifest& manifest) {
  using Json = nlohmann::json;
  const std::string expected = checkpoint::safetensors_index(manifest);
  const std::string text = checkpoint::read_text(path, 2 * expected.size());
  if (text == expected) return;
  // Another program may have written the same again. The document refuses what cannot be compared.
  const JsonDocument checked(text, fmt::format("'{}'", path));
  if (Json::parse(text) != Json::parse(expected))
    throw DataLoss("'{}' does not name the tensors that the manifest names", path);
}

}  // namespace

std::vector<FoundCheckpoint> list_checkpoints(const std::string& folder) {
  std::vector<FoundCheckpoint> found;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return found;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error))
    if (const auto step = checkpoint::step_in(entries->path().filename().string()))
      found.push_back({*step, entries->path().string()});
  if (error) throw Unavailable("cannot read the folder '{}': {}", folder, error.message());
  std::ranges::sort(found, {}, &FoundCheckpoint::step);
  return found;
}

std::vector<std::string> checkpoint::find_damage(const std::string& path) {
  std::vector<std::string> problems;
  // A file that is not there is damage; one that cannot be read now is not.
  const auto note = [&](const Error& error, const std::string& file) {
    const bool may_be_sound =
        error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kUnimplemented;
    if (may_be_sound && !is_gone(file)) throw_error(error);
    problems.emplace_back(error.what());
  };
  std::optional<Manifest> manifest;
  try {
    manifest = read_manifest(path);
  } catch (const Error& error) {
    note(error, fmt::format("{}/{}", path, kManifestName));
  }
  if (manifest) {
    PieceReader reader(path);
    for (const auto& [name, entry] : manifest->files) {
      const std::string file = fmt::format("{}/{}", path, name);
      try {
        const auto damage = damage_of(file, entry);
        if (damage) problems.push_back(*damage);
        if (name == kIndexName && !damage) compare_index(file, *manifest);
        check_values(reader, *manifest, name, !damage, problems);
      } catch (const Error& error) {
        note(error, file);
      }
    }
  }
  // A link that leads nowhere is there, and leads to no checkpoint.
  std::error_code ignored;
  if (!problems.empty() && !std::filesystem::is_symlink(path, ignored) && is_gone(path))
    throw Unavailable("'{}' is not there, or was removed while it was read: {}", path, problems.front());
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
