#include "memory_snapshots.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/base/log.h>
#include <cohort/checkpoint/checkpoint.h>

#include "checkpoint/format/file.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint_writer.h"
#include "workers.h"

namespace cohort::checkpoint {
namespace {

bool is_of_first(const NamedValue& value) { return !value.is_everywhere && !value.is_collective; }

void append(std::string& text, const void* bytes, std::size_t count) {
  text.append(static_cast<const char*>(bytes), count);
}

/// Rank, extents and elements of each value that the first worker alone has.
std::string pack(const std::map<std::string, NamedValue>& values) {
  std::string packed;
  for (const auto& [name, value] : values) {
    if (!is_of_first(value)) continue;
    const Tensor host = value.read().on_host();
    const std::int64_t rank = host.shape().rank();
    append(packed, &rank, sizeof rank);
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t extent = host.shape()[static_cast<int>(i)];
      append(packed, &extent, sizeof extent);
    }
    const auto bytes = host.raw();
    append(packed, bytes.data(), bytes.size());
  }
  return packed;
}

/// Takes values from what pack() has made of them; both have the same names and dtypes.
class Unpacking {
 public:
  explicit Unpacking(const std::string& packed) : packed_(packed) {}

  Tensor next(DType dtype) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(number()));
    for (std::int64_t& extent : extents) extent = number();
    Tensor tensor = Tensor::uninitialized(Shape(extents), dtype);
    const auto bytes = tensor.raw();
    take(bytes.data(), bytes.size());
    return tensor;
  }

 private:
  std::int64_t number() {
    std::int64_t value = 0;
    take(&value, sizeof value);
    return value;
  }
  void take(void* target, std::size_t count) {
    COHORT_CHECK(at_ + count <= packed_.size());
    if (count > 0) std::memcpy(target, packed_.data() + at_, count);
    at_ += count;
  }

  const std::string& packed_;
  std::size_t at_ = 0;
};

NamedValue constant(const Tensor& tensor) {
  return {.dtype = tensor.dtype(),
          .shape = [tensor] { return tensor.shape(); },
          .read = [tensor] { return tensor; },
          .is_everywhere = true};
}

/// The values of a checkpoint as every worker has them, so that any group of workers can write all of them.
/// Values that all have stay as they are. Those that all workers read together are read, and those that the
/// first worker alone has are sent to the others. Collective.
/// @throws InvalidArgument where workers have other values.
std::map<std::string, NamedValue> shared_with_all(const Workers& workers,
                                                  const std::map<std::string, NamedValue>& values) {
  const auto list = [&] {
    std::string text;
    for (const auto& [name, value] : values) text += fmt::format("'{}' {}\n", name, to_string(value.dtype));
    return text;
  };
  workers.agree(list, "the values of the checkpoint");
  const std::string packed =
      workers.together([&] { return workers.is_first() ? pack(values) : std::string(); })[0];
  Unpacking unpacking(packed);
  std::map<std::string, NamedValue> shared;
  for (const auto& [name, value] : values) {
    if (value.is_collective)
      shared.emplace(name, constant(value.read().on_host()));
    else
      shared.emplace(name, value.is_everywhere ? value : constant(unpacking.next(value.dtype)));
  }
  return shared;
}

/// Beside the one that is written. Both together are the two that there are.
constexpr std::size_t kKept = 1;
constexpr std::int64_t kBytesAtOnce = std::int64_t{64} << 20;

/// The job's folder, which other users can neither read nor have made before.
void make_own_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw Unavailable("cannot make the folder '{}' for snapshots: {}", folder, std::strerror(errno));
  struct stat state {};
  if (::lstat(folder.c_str(), &state) != 0)
    throw Unavailable("cannot look at the folder '{}': {}", folder, std::strerror(errno));
  if (!S_ISDIR(state.st_mode) || state.st_uid != ::geteuid())
    throw Unavailable("'{}' is no folder of this user, so no snapshots are kept there", folder);
}

std::vector<std::string> files_in(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// A sound snapshot, as `STEP FINGERPRINT-OF-ITS-MANIFEST`.
std::string describe(const FoundCheckpoint& found) {
  return fmt::format("{} {}", found.step, fingerprint_of(to_json(read_manifest(found.path))));
}

/// The step in such a text.
std::int64_t step_of(const std::string& text) {
  std::int64_t step = -1;
  std::from_chars(text.data(), text.data() + text.size(), step);
  return step;
}

}  // namespace

MemorySnapshots::MemorySnapshots(const Workers& workers, const std::string& folder, const std::string& host,
                                 const std::string& folder_on_disk)
    : folder_(fmt::format("{}/{}/{:016x}", folder, host,
                          fingerprint_of(std::filesystem::absolute(folder_on_disk).string()))) {
  const std::vector<std::string> hosts = workers.together([&] { return host; });
  const auto first = std::ranges::find(hosts, host) - hosts.begin();
  neighbours_ = workers.make_group(static_cast<int>(first));
  workers.together_do([&] {
    if (first != workers.rank()) return;
    make_own_folder(folder);
    lock_ = std::make_unique<WriterLock>(folder_);
  });
}

Workers MemorySnapshots::on_host(const Workers& workers) const {
  return neighbours_ != nullptr ? workers.on(*neighbours_) : workers;
}

void MemorySnapshots::save(const Workers& workers, const std::map<std::string, NamedValue>& values,
                           std::int64_t step) {
  const auto shared = shared_with_all(workers, values);
  const Workers host = on_host(workers);
  try {
    host.first_does([&] { make_room(step); });
    CheckpointWriter(host, shared, folder_, step, lock_.get(), {}).write(host);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    if (lock_ != nullptr)
      logging::warning("there is no snapshot of step {} in memory: {}", step, error.what());
  }
}

/// Also removes one of the same step, which a job that did not restore it comes to again.
void MemorySnapshots::make_room(std::int64_t step) const {
  std::vector<FoundCheckpoint> found = list_checkpoints(folder_);
  std::ranges::reverse(found);
  std::size_t kept = 0;
  for (const FoundCheckpoint& each : found)
    if (each.step == step || ++kept > kKept) remove_checkpoint(folder_, each.step);
}

/// The newest sound snapshot of this host; removes damaged ones, so that their steps can be saved again.
std::string MemorySnapshots::judge() const {
  std::vector<FoundCheckpoint> found = list_checkpoints(folder_);
  std::ranges::reverse(found);
  for (const FoundCheckpoint& each : found) {
    const std::vector<std::string> problems = find_damage(each.path);
    if (problems.empty()) return describe(each);
    logging::warning("snapshot '{}' is skipped, and removed: {}", each.path, fmt::join(problems, "; "));
    remove_checkpoint(folder_, each.step);
  }
  return {};
}

std::optional<FoundCheckpoint> MemorySnapshots::find_newest(const Workers& workers) {
  // By worker; those that are not the first of their host say nothing.
  const auto found = workers.together([&] { return lock_ != nullptr ? judge() : std::string(); });
  const auto newest = std::ranges::max_element(found, {}, step_of);
  const std::int64_t step = step_of(*newest);
  if (step < 0) return std::nullopt;
  const std::vector<std::string> wanting = workers.together([&] {
    return std::string(lock_ != nullptr && found[static_cast<std::size_t>(workers.rank())] != *newest ? "yes"
                                                                                                      : "");
  });
  if (std::ranges::find(wanting, "yes") != wanting.end())
    copy_from(workers, static_cast<int>(newest - found.begin()), step,
              !wanting[static_cast<std::size_t>(workers.rank())].empty());
  return FoundCheckpoint{step, checkpoint_path(folder_, step)};
}

void MemorySnapshots::copy_from(const Workers& workers, int source, std::int64_t step, bool is_wanted) const {
  const bool gives = workers.rank() == source;
  const std::string path = checkpoint_path(folder_, step);
  const std::string unfinished = unfinished_path(folder_, step);
  const auto names = workers.together([&] {
    if (is_wanted) {
      make_room(step);
      std::filesystem::create_directory(unfinished);
    }
    return gives ? fmt::format("{}", fmt::join(files_in(path), "\n")) : std::string();
  })[static_cast<std::size_t>(source)];
  std::istringstream lines(names);
  for (std::string name; std::getline(lines, name);) {
    std::optional<InputFile> input;
    std::optional<OutputFile> output;
    const auto sizes = workers.together([&] {
      if (gives) input.emplace(fmt::format("{}/{}", path, name));
      if (is_wanted) output.emplace(fmt::format("{}/{}", unfinished, name));
      return gives ? std::to_string(input->size()) : std::string();
    });
    const std::int64_t size = step_of(sizes[static_cast<std::size_t>(source)]);
    for (std::int64_t at = 0; at < size; at += kBytesAtOnce) {
      const Tensor bytes = Tensor::uninitialized({std::min(kBytesAtOnce, size - at)}, DType::kUInt8);
      workers.together_do([&] {
        if (gives) input->read(static_cast<std::uint64_t>(at), bytes.raw());
      });
      workers.broadcast(bytes, source);
      workers.together_do([&] {
        if (is_wanted) output->write(bytes.raw());
      });
    }
    workers.together_do([&] {
      if (is_wanted) output->finish();
    });
  }
  workers.together_do([&] {
    if (is_wanted) std::filesystem::rename(unfinished, path);
  });
}

}  // namespace cohort::checkpoint
