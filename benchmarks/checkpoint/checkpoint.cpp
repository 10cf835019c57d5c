#include "checkpoint/checkpoint.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/strategy/mirrored_strategy.h>

#include "busy_loop.h"
#include "timing.h"
#include "value_table.h"

namespace cohort::bench {
namespace {

constexpr std::size_t kSmallBytes = 4096;
constexpr double kStepUs = 5000;
constexpr int kStepsAlone = 50;

/// The original's, for 1 GiB in one variable.
constexpr std::size_t kOriginalBytes = std::size_t{1} << 30;
constexpr double kOriginalSave = 5.31;
constexpr double kOriginalRestore = 1.42;

/// A new folder, removed with what is in it.
class Folder {
 public:
  explicit Folder(const std::string& parent) {
    const std::filesystem::path where =
        parent.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(parent);
    path_ = (where / "cohort-bench-checkpoint-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr)
      throw Unavailable("cannot make a folder in '{}': {}", where.string(), std::strerror(errno));
  }
  ~Folder() {
    std::error_code ignored;  // nothing can be done about it
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// `cp FROM TO`, and TO reaches the disk.
void copy_and_sync(const std::string& from, const std::string& to) {
  const std::array<const char*, 5> arguments{"cp", "--", from.c_str(), to.c_str(), nullptr};
  pid_t child = 0;
  int status = 0;
  if (const int cause =
          ::posix_spawnp(&child, "cp", nullptr, nullptr, const_cast<char**>(arguments.data()), environ);
      cause != 0)
    throw Unavailable("cannot run cp: {}", std::strerror(cause));
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) throw Unavailable("'cp {} {}' failed", from, to);
  const int descriptor = ::open(to.c_str(), O_RDONLY | O_CLOEXEC);
  const bool is_synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int cause = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!is_synced) throw Unavailable("cannot write '{}' to the disk: {}", to, std::strerror(cause));
}

/// The values of a training, and their checkpoints.
class CheckpointMeasurement {
 public:
  CheckpointMeasurement(const CheckpointBenchOptions& options, const TickClock& clock)
      : options_(options),
        clock_(clock),
        folder_(options.folder),
        strategy_(cpu_devices(2)),
        busy_loop_(clock),
        result_{options.loops, {}} {}

  CheckpointResult measure();

 private:
  /// Calls in turns: `mode` on checkpoints of so many values of together `bytes` bytes, and a copy.
  void measure_modes(std::size_t bytes, std::int64_t values, bool in_background);
  void add(CheckpointRow row, const std::function<double()>& call);

  [[nodiscard]] double seconds(const std::function<void()>& call) const;
  [[nodiscard]] double seconds_of_copy() const;
  [[nodiscard]] double seconds_of_steps(int steps) const;
  [[nodiscard]] double step_loss(const std::string& path) const;
  void remove(const std::string& path) const;

  const CheckpointBenchOptions& options_;
  const TickClock& clock_;
  const Folder folder_;
  const MirroredStrategy strategy_;
  const BusyLoop busy_loop_;
  std::string original_;  ///< of the copy: a file of the values in a checkpoint
  CheckpointResult result_;
};

double CheckpointMeasurement::seconds(const std::function<void()>& call) const {
  const std::uint64_t start = clock_.now();
  call();
  return clock_.microseconds(clock_.now() - start) * 1e-6;
}

void CheckpointMeasurement::remove(const std::string& path) const {
  std::filesystem::remove_all(path);
  // What was freed is not written while the next call is measured.
  const int descriptor = ::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::syncfs(descriptor);
  ::close(descriptor);
}

double CheckpointMeasurement::seconds_of_copy() const {
  const std::string copy = folder_.path() + "/copy";
  const double time = seconds([&] { copy_and_sync(original_, copy); });
  remove(copy);
  return time;
}

double CheckpointMeasurement::seconds_of_steps(int steps) const {
  return seconds([&] {
    for (int step = 0; step < steps; ++step) strategy_.run([&] { busy_loop_(kStepUs); });
  });
}

/// Until the checkpoint at `path` is complete.
double CheckpointMeasurement::step_loss(const std::string& path) const {
  double total = 0;
  int steps = 0;
  while (!std::filesystem::exists(path)) {
    total += seconds_of_steps(1);
    ++steps;
  }
  const double alone = seconds_of_steps(kStepsAlone) / kStepsAlone;
  return steps == 0 ? 0 : 1 - steps * alone / total;
}

void CheckpointMeasurement::add(CheckpointRow row, const std::function<double()>& call) {
  std::vector<double> times;
  std::vector<double> copies;
  for (int loop = 0; loop < options_.loops; ++loop) {
    times.push_back(call());
    copies.push_back(seconds_of_copy());
  }
  row.seconds = median(times);
  row.copy_seconds = median(copies);
  result_.rows.push_back(row);
}

void CheckpointMeasurement::measure_modes(std::size_t bytes, std::int64_t values, bool in_background) {
  const auto elements = static_cast<std::int64_t>(bytes / sizeof(float)) / values;
  std::vector<Variable> variables;
  Checkpoint checkpoint;
  for (std::int64_t i = 0; i < values; ++i) {
    const Tensor value = Tensor::uninitialized({elements}, DType::kFloat32);
    std::uint64_t index = 0;
    for (float& element : value.span<float>())
      element = static_cast<float>(mixed_bits(static_cast<std::uint64_t>(i), index++) >> 40);
    variables.emplace_back(VariableOptions{.initial_value = value});
    checkpoint.add(fmt::format("layer_{}/kernel", i), variables.back());
  }
  const Tensor first = variables.front().read().clone();

  std::int64_t step = 0;
  const std::string path = checkpoint.save(folder_.path(), step);
  original_ = path + "/values-00000-of-00001.safetensors";
  const bool is_original = values == 1 && bytes == kOriginalBytes;
  const CheckpointRow row{.bytes = bytes, .values = values};
  const auto of = [&](std::string_view mode, std::optional<double> original) {
    CheckpointRow result = row;
    result.mode = mode;
    if (is_original) result.original_seconds = original;
    return result;
  };
  add(of("save", kOriginalSave), [&] {
    std::string saved;
    const double time = seconds([&] { saved = checkpoint.save(folder_.path(), ++step); });
    remove(saved);
    return time;
  });
  if (in_background) {
    std::vector<double> losses;
    add(of("save_async", std::nullopt), [&] {
      std::string saved;
      const double time = seconds([&] { saved = checkpoint.save_async(folder_.path(), ++step); });
      losses.push_back(step_loss(saved));
      checkpoint.wait();
      remove(saved);
      return time;
    });
    result_.rows.back().step_loss = median(losses);
  }
  add(of("restore", kOriginalRestore), [&] {
    variables.front().assign(Tensor::zeros(first.shape(), first.dtype()));
    const double time = seconds([&] { checkpoint.restore(path).assert_consumed(); });
    if (!bitwise_equal(first, variables.front().read()))
      throw Internal("a variable of {} bytes was restored as something else than it was saved",
                     first.bytes());
    return time;
  });
  add(of("verify", std::nullopt), [&] {
    std::vector<std::string> problems;
    const double time = seconds([&] { problems = verify_checkpoint(path); });
    if (!problems.empty()) throw Internal("a checkpoint is damaged: {}", problems.front());
    return time;
  });
  std::filesystem::remove_all(path);
}

CheckpointResult CheckpointMeasurement::measure() {
  measure_modes(static_cast<std::size_t>(options_.mib) << 20, 1, true);
  const std::size_t small = static_cast<std::size_t>(options_.small_values) * kSmallBytes;
  for (const std::int64_t values : {1, options_.small_values}) measure_modes(small, values, false);
  return std::move(result_);
}

}  // namespace

CheckpointResult measure(const CheckpointBenchOptions& options, const CommandContext& context) {
  return CheckpointMeasurement(options, context.clock).measure();
}

}  // namespace cohort::bench
