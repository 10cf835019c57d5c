// Writes safetensors files as PyTorch and transformers do: one, or several with an index.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/files.h"
#include "base/system_calls.h"
#include "checkpoint/format/file.h"
#include "checkpoint/format/safetensors.h"
#include "export.h"

namespace cohort::tool {
namespace {

constexpr std::string_view kEnding = ".safetensors";
constexpr const char* kStep = "step";  // in the metadata of exported files
constexpr std::uint64_t kLargestIndex = std::uint64_t{1} << 30;

using Shard = std::span<const ExportedValue>;

/// Values in their order, as long as they fit; one that does not fit by itself has a file of its own.
std::vector<Shard> divide(std::span<const ExportedValue> values, std::uint64_t shard_bytes) {
  std::vector<Shard> shards;
  std::size_t begin = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t more = values[i].bytes();
    if (i > begin && (bytes > shard_bytes || more > shard_bytes - bytes)) {
      shards.push_back(values.subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += more;
  }
  shards.push_back(values.subspan(begin));
  return shards;
}

void write(const NewFile& file, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(file.descriptor(), bytes.data(), bytes.size()); });
    if (written < 0) throw Unavailable("cannot write '{}': {}", path, std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

std::unique_ptr<NewFile> write_shard(const std::string& target, Shard values, std::int64_t step,
                                     checkpoint::PieceReader& reader) {
  std::vector<checkpoint::NamedTensor> tensors;
  std::unordered_map<std::string_view, const ExportedValue*> by_name;
  for (const ExportedValue& value : values) {
    tensors.push_back({value.name, value.dtype, value.shape});
    by_name.emplace(value.name, &value);
  }
  // Without a format, transformers refuses a file; this one means that names and shapes are PyTorch's.
  const std::string beginning =
      checkpoint::begin_safetensors(tensors, {{"format", "pt"}, {kStep, std::to_string(step)}});
  auto file = std::make_unique<NewFile>(target);
  write(*file, target, std::as_bytes(std::span(beginning)));
  for (const checkpoint::NamedTensor& tensor : tensors) {
    const Tensor value = by_name.at(tensor.name)->read(reader);
    write(*file, target, value.raw());
  }
  return file;
}

/// Where an export goes, and what an earlier one has left there.
class Place {
 public:
  explicit Place(std::string path)
      : path_(std::move(path)), stem_(path_.substr(0, path_.size() - kEnding.size())) {}

  [[nodiscard]] std::string index() const { return path_ + ".index.json"; }
  [[nodiscard]] std::string shard(std::size_t number, std::size_t count) const {
    return fmt::format("{}-{:05}-of-{:05}{}", stem_, number, count, kEnding);
  }

  /// The shards of an earlier export, as its index names them; none where the index has files of others,
  /// which are theirs to remove.
  [[nodiscard]] std::set<std::string> old_shards() const {
    std::error_code error;
    if (!std::filesystem::exists(index(), error)) return {};
    const auto folder = std::filesystem::path(path_).parent_path();
    std::set<std::string> old;
    for (const auto& [tensor, file] :
         checkpoint::parse_index(checkpoint::read_text(index(), kLargestIndex), index()))
      old.insert((folder / file).string());
    return std::ranges::all_of(old, [&](const std::string& file) { return is_own(file); })
               ? old
               : std::set<std::string>();
  }

 private:
  [[nodiscard]] bool is_own(const std::string& file) const {
    if (!file.starts_with(stem_ + "-") || !file.ends_with(kEnding)) return false;
    try {
      return checkpoint::read_header(checkpoint::InputFile(file)).metadata.contains(kStep);
    } catch (const Error&) {
      return false;  // it is gone, or damaged
    }
  }

  std::string path_;
  std::string stem_;
};

void remove(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error)
    throw Unavailable("cannot remove '{}', which is of an earlier export: {}", path, error.message());
}

}  // namespace

WrittenFiles write_safetensors(const std::string& target, const std::string& path, std::int64_t step,
                               std::span<const ExportedValue> values,
                               std::optional<std::uint64_t> shard_bytes) {
  const Place place(target);
  checkpoint::PieceReader reader(path);
  const std::set<std::string> old_shards = place.old_shards();
  std::uint64_t bytes = 0;
  for (const ExportedValue& value : values) bytes += value.bytes();
  if (!shard_bytes || bytes <= *shard_bytes) {
    write_shard(target, values, step, reader)->publish();
    if (!old_shards.empty()) remove(place.index());
    for (const std::string& old : old_shards) remove(old);
    return {target};
  }

  const std::vector<Shard> shards = divide(values, *shard_bytes);
  std::map<std::string_view, std::string_view> files;
  std::vector<std::string> paths;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<NewFile>> written;
  names.reserve(shards.size());  // the index refers to them
  for (const Shard shard : shards) {
    paths.push_back(place.shard(paths.size() + 1, shards.size()));
    names.push_back(std::filesystem::path(paths.back()).filename().string());
    written.push_back(write_shard(paths.back(), shard, step, reader));
    for (const ExportedValue& value : shard) files.emplace(value.name, names.back());
  }
  NewFile index(place.index());
  const std::string text = checkpoint::safetensors_index(bytes, files);
  write(index, place.index(), std::as_bytes(std::span(text)));
  for (const auto& file : written) file->publish();
  index.publish();
  // Readers prefer the single file where there are both.
  remove(target);
  for (const std::string& old : old_shards)
    if (std::ranges::find(paths, old) == paths.end()) remove(old);
  return {place.index(), shards.size()};
}

}  // namespace cohort::tool
