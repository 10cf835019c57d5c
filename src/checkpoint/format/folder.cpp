#include "folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "base/crc32c.h"
#include "base/system_calls.h"
#include "file.h"

namespace cohort::checkpoint {
namespace {

constexpr const char* kLockName = ".writer";
constexpr std::string_view kBeginning = "step-";
constexpr std::string_view kUnfinished = ".unfinished";
constexpr std::uint64_t kLargestManifest = std::uint64_t{1} << 30;

/// Each is on disk before a checkpoint in it is.
void make_folders(const std::filesystem::path& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::is_directory(path, error)) return;
  const std::filesystem::path parent = path.parent_path();
  make_folders(parent);
  std::filesystem::create_directory(path, error);
  if (error) throw Unavailable("cannot make the folder '{}': {}", path.string(), error.message());
  sync_folder(parent.empty() ? "." : parent.string());
}

void remove_all(const std::string& path) {
  std::error_code error;
  do std::filesystem::remove_all(path, error);
  while (error == std::errc::interrupted);
  if (error) throw Unavailable("cannot remove '{}': {}", path, error.message());
}

void rename_folder(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    throw Unavailable("cannot give '{}' the name '{}': {}", from, to, std::strerror(errno));
}

FileEntry write_text(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.finish();
  return {file.size(), file.checksum()};
}

/// Removes what killed writers have left. What cannot be removed now is left to the next writer.
void remove_abandoned(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> found;
  for (std::filesystem::directory_iterator entries(folder, error);
       !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name.starts_with(kBeginning) && name.ends_with(kUnfinished))
      found.push_back(entries->path().string());
  }
  for (const std::string& path : found) {
    try {
      remove_all(path);
    } catch (const Unavailable& failure) {
      logging::warning("what a killed job has left stays: {}", failure.what());
    }
  }
}

/// What the writer of a lock has said of itself.
std::string owner_of(int descriptor) {
  std::array<char, 256> text{};
  const ssize_t count = ::pread(descriptor, text.data(), text.size(), 0);
  return count > 0 ? std::string(text.data(), static_cast<std::size_t>(count)) : "unknown";
}

std::string this_process() { return fmt::format("process {} on host {}", ::getpid(), host_name()); }

}  // namespace

WriterLock::WriterLock(const std::string& folder) {
  make_folders(folder);
  const std::string path = folder + "/" + kLockName;
  descriptor_ =
      uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666); });
  if (descriptor_ < 0) throw Unavailable("cannot write to the folder '{}': {}", folder, std::strerror(errno));
  const int status = uninterrupted([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); });
  if (status != 0 && errno != EWOULDBLOCK && errno != ENOSYS && errno != EOPNOTSUPP) {
    const int cause = errno;
    ::close(descriptor_);
    throw Unavailable("cannot lock '{}': {}", path, std::strerror(cause));
  }
  if (status != 0 && errno == EWOULDBLOCK) {
    const std::string owner = owner_of(descriptor_);
    ::close(descriptor_);
    throw Unavailable("another writer, {}, saves checkpoints to '{}': give each job a folder of its own",
                      owner, folder);
  }
  // For the message of others alone, so that it does not matter whether it succeeds.
  const std::string self = this_process();
  if (::ftruncate(descriptor_, 0) == 0)
    static_cast<void>(::pwrite(descriptor_, self.data(), self.size(), 0) == 0);
  remove_abandoned(folder);
}

WriterLock::~WriterLock() { ::close(descriptor_); }

std::string checkpoint_path(const std::string& folder, std::int64_t step) {
  return fmt::format("{}/{}{}", folder, kBeginning, step);
}

std::string unfinished_path(const std::string& folder, std::int64_t step) {
  return fmt::format("{}{}", checkpoint_path(folder, step), kUnfinished);
}

std::optional<std::int64_t> step_in(std::string_view name) {
  if (!name.starts_with(kBeginning)) return std::nullopt;
  const std::string_view digits = name.substr(kBeginning.size());
  std::int64_t step = -1;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool is_number = status == std::errc() && end == digits.data() + digits.size() && step >= 0;
  const bool is_step = is_number && digits == std::to_string(step);  // others would be two of one step
  return is_step ? std::optional(step) : std::nullopt;
}

Manifest read_manifest(const std::string& path) {
  const std::string file = fmt::format("{}/{}", path, kManifestName);
  Manifest manifest = parse_manifest(read_text(file, kLargestManifest), file);
  const std::string_view trimmed = std::string_view(path).substr(0, path.find_last_not_of('/') + 1);
  const auto step = step_in(trimmed.substr(trimmed.rfind('/') + 1));
  if (step && *step != manifest.step) {
    throw DataLoss("'{}' is of step {}, and its folder of step {}: files were mixed up, or it was renamed",
                   file, manifest.step, *step);
  }
  return manifest;
}

bool is_gone(const std::string& path) {
  std::error_code error;
  return !std::filesystem::exists(path, error) && !error;
}

UnfinishedFolder::UnfinishedFolder(const std::string& folder, std::int64_t step)
    : folder_(folder), path_(checkpoint_path(folder, step)), unfinished_(unfinished_path(folder, step)) {
  std::error_code error;
  if (std::filesystem::exists(path_, error))
    throw InvalidArgument("there is a checkpoint '{}' already: save another step, or remove it", path_);
  if (error) throw Unavailable("cannot look for '{}': {}", path_, error.message());
  remove_all(unfinished_);
  make_folders(folder_);
  // On disk once it is published: `folder_` is synced then.
  std::filesystem::create_directory(unfinished_, error);
  if (error) throw Unavailable("cannot make the folder '{}': {}", unfinished_, error.message());
}

UnfinishedFolder::~UnfinishedFolder() {
  if (unfinished_.empty()) return;
  std::error_code ignored;  // the next writer tries again
  std::filesystem::remove_all(unfinished_, ignored);
}

void UnfinishedFolder::publish(Manifest manifest) {
  // What another worker wrote to a folder of the same name on a disk of its own is not here.
  for (const auto& [name, entry] : manifest.files) {
    const InputFile file(fmt::format("{}/{}", unfinished_, name));
    if (file.size() != entry.size) {
      throw Unavailable("'{}' has {} bytes here and {} where it was written: all workers must see one folder",
                        file.path(), file.size(), entry.size);
    }
  }
  manifest.files[kIndexName] = write_text(unfinished_ + "/" + kIndexName, safetensors_index(manifest));
  write_text(unfinished_ + "/" + kManifestName, to_json(manifest));
  sync_folder(unfinished_);
  rename_folder(unfinished_, path_);
  try {
    sync_folder(folder_);
  } catch (const Unavailable& error) {
    take_back(error.what());
    throw;
  }
  unfinished_.clear();
}

void UnfinishedFolder::take_back(const std::string& cause) const {
  if (std::rename(path_.c_str(), unfinished_.c_str()) == 0) return;
  throw Unavailable("{}; '{}' is complete, but may be lost if this machine loses its power now", cause,
                    path_);
}

void remove_checkpoint(const std::string& folder, std::int64_t step) {
  const std::string doomed = unfinished_path(folder, step);
  remove_all(doomed);
  rename_folder(checkpoint_path(folder, step), doomed);
  sync_folder(folder);  // before its files go
  remove_all(doomed);
}

void set_aside(const std::string& folder, std::int64_t step) {
  const std::string path = checkpoint_path(folder, step);
  remove_all(path + ".damaged");
  rename_folder(path, path + ".damaged");
}

namespace {

void compare_checksum(std::uint32_t checksum, const std::string& name, const Piece& piece,
                      const InputFile& file) {
  if (checksum == piece.checksum) return;
  throw DataLoss("value '{}' is damaged: the checksum of its rows {} to {} in '{}' is wrong", name,
                 piece.first_row, piece.first_row + piece.rows - 1, file.path());
}

}  // namespace

std::vector<PieceReader::Place> PieceReader::open(const std::string& name, const ValueEntry& value) {
  std::vector<Place> places;
  places.reserve(value.pieces.size());
  for (const Piece& piece : value.pieces) places.push_back(locate(name, value, piece));
  return places;
}

Tensor PieceReader::read(const std::string& name, const ValueEntry& value) {
  const std::vector<Place> places = open(name, value);
  Tensor whole = Tensor::uninitialized(value.shape, value.dtype);
  std::span<std::byte> rest = whole.raw();
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& [file, place] = places[i];
    const auto bytes = rest.first(place.bytes());
    file->read(place.begin, bytes);
    compare_checksum(detail::crc32c(bytes), name, value.pieces[i], *file);
    rest = rest.subspan(bytes.size());
  }
  return whole;
}

void PieceReader::check(const std::string& name, const ValueEntry& value, const Piece& piece) {
  const auto [file, place] = locate(name, value, piece);
  compare_checksum(checksum_of(*file, place.begin, place.bytes()), name, piece, *file);
}

PieceReader::Place PieceReader::locate(const std::string& name, const ValueEntry& value, const Piece& piece) {
  auto& open = files_[piece.file];
  if (open == nullptr) open = std::make_unique<OpenFile>(folder_ + "/" + piece.file);
  const auto found = open->header.tensors.find(piece.tensor);
  if (found == open->header.tensors.end())
    throw DataLoss("value '{}': '{}' has no tensor '{}'", name, open->file.path(), piece.tensor);
  const TensorPlace& place = found->second;
  if (place.dtype != value.dtype || place.shape != piece_shape(value.shape, piece.rows) ||
      !place.foreign.empty()) {
    throw DataLoss("value '{}': tensor '{}' in '{}' is {}{}, and not as the manifest says", name,
                   piece.tensor, open->file.path(), to_string(place.dtype), to_string(place.shape));
  }
  return {&open->file, place};
}

}  // namespace cohort::checkpoint
