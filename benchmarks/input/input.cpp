#include "input/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/input/distribute.h>
#include <cohort/input/files/csv.h>
#include <cohort/input/files/fixed_length_record.h>
#include <cohort/input/files/npy.h>
#include <cohort/input/files/tf_record.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

#include "busy_loop.h"
#include "input/input_files.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

constexpr std::int64_t kRangeElements = std::int64_t{1} << 21;
constexpr double kComputeOverReading = 2.5;
constexpr std::int64_t kMostSteps = 2000;  // with computing
constexpr double kMostStepsUs = 2'000'000;

/// Forgets the most memory that this process has had; where the kernel refuses, it stays that of the whole
/// run.
void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << 5; }

/// The most since then, in bytes: resident, with the pages of mapped files; 0 where the kernel does not tell.
std::uint64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes << 10;
  }
  return 0;
}

struct Source {
  std::string name;
  std::string path;  ///< empty: in memory
  Dataset<Tensor> dataset;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
};

class InputBench {
 public:
  InputBench(const InputBenchOptions& options, const TickClock& clock)
      : options_(options), clock_(clock), busy_loop_(clock), files_(options), two_(cpu_devices(2)) {}

  [[nodiscard]] InputResult measure();

 private:
  [[nodiscard]] std::vector<Source> sources() const;

  /// The median time of `run()`, in microseconds.
  template <class Run>
  [[nodiscard]] double time(Run run) const;

  void measure_read(const Source& source);
  /// Element by element, or in batches. Returns the time of each.
  double measure_alone(const Source& source, std::optional<std::int64_t> batch);
  void measure_distributed(const Source& source, const Strategy& strategy, double batch_us);
  [[nodiscard]] double waiting_share(const DistributedDataset<Tensor>& batches, const Strategy& strategy,
                                     double compute_us) const;

  const InputBenchOptions& options_;
  const TickClock& clock_;
  BusyLoop busy_loop_;
  InputFiles files_;
  OneDeviceStrategy one_;
  MirroredStrategy two_;
  InputResult result_;
};

std::vector<Source> InputBench::sources() const {
  const auto of_file = [&](const char* name, const std::string& path, Dataset<Tensor> dataset) {
    return Source{name, path, std::move(dataset), files_.elements(),
                  static_cast<std::int64_t>(std::filesystem::file_size(path))};
  };
  return {
      {"range", "", Dataset<Tensor>::range(kRangeElements), kRangeElements,
       kRangeElements * static_cast<std::int64_t>(sizeof(std::int64_t))},
      of_file("csv", files_.csv(), csv_dataset<Tensor>({files_.csv()})),
      of_file("npy", files_.npy(), npy_dataset({files_.npy()})),
      of_file("tf_record", files_.tf_record(), tf_record_dataset({files_.tf_record()})),
      of_file("fixed_length", files_.fixed_length(),
              fixed_length_record_dataset({files_.fixed_length()}, {.record_bytes = options_.record_bytes})),
  };
}

template <class Run>
double InputBench::time(Run run) const {
  std::vector<double> us;
  for (int loop = 0; loop < options_.loops; ++loop) {
    const std::uint64_t start = clock_.now();
    run();
    us.push_back(clock_.microseconds(clock_.now() - start));
  }
  return median(us);
}

void InputBench::measure_read(const Source& source) {
  reset_peak_memory();
  std::vector<std::byte> buffer(std::size_t{1} << 18);
  const double us = time([&] {
    const int file = ::open(source.path.c_str(), O_RDONLY | O_CLOEXEC);
    while (::read(file, buffer.data(), buffer.size()) > 0) continue;
    ::close(file);
  });
  result_.rows.push_back({.source = "read(" + source.name + ")",
                          .bytes_per_s = static_cast<double>(source.bytes) / us * 1e6,
                          .peak_rss_bytes = peak_memory()});
}

double InputBench::measure_alone(const Source& source, std::optional<std::int64_t> batch) {
  reset_peak_memory();
  const Dataset<Tensor> dataset = batch ? source.dataset.batch(*batch) : source.dataset;
  std::int64_t count = 0;
  const double us = time([&] {
    count = 0;
    for (const Tensor& element : dataset) count += element.elements() > 0 ? 1 : 0;
  });
  result_.rows.push_back(
      {.source = source.name,
       .batch = batch,
       .batches_per_s = batch ? std::optional(static_cast<double>(count) / us * 1e6) : std::nullopt,
       .elements_per_s = static_cast<double>(source.elements) / us * 1e6,
       .bytes_per_s = static_cast<double>(source.bytes) / us * 1e6,
       .peak_rss_bytes = peak_memory()});
  return us / static_cast<double>(count);
}

void InputBench::measure_distributed(const Source& source, const Strategy& strategy, double batch_us) {
  reset_peak_memory();
  const auto batches = strategy.distribute_dataset(
      source.dataset.batch(options_.batch), {.input = {.per_replica_buffer_size = options_.read_ahead}});
  std::int64_t steps = 0;
  const double us = time([&] {
    steps = 0;
    for (const auto& batch : batches) steps += batch.components().empty() ? 0 : 1;
  });
  const double compute_us = options_.compute_us.value_or(kComputeOverReading * batch_us);
  const double share = waiting_share(batches, strategy, compute_us);
  result_.rows.push_back({.source = source.name,
                          .replicas = strategy.num_replicas_in_sync(),
                          .batch = options_.batch,
                          .batches_per_s = static_cast<double>(steps) / us * 1e6,
                          .elements_per_s = static_cast<double>(source.elements) / us * 1e6,
                          .bytes_per_s = static_cast<double>(source.bytes) / us * 1e6,
                          .compute_us = compute_us,
                          .waiting_share = share,
                          .peak_rss_bytes = peak_memory()});
}

double InputBench::waiting_share(const DistributedDataset<Tensor>& batches, const Strategy& strategy,
                                 double compute_us) const {
  double total_us = 0;
  double waiting_us = 0;
  std::int64_t steps = 0;
  // The first batch is waited for once in a training, however long that is.
  for (auto batch = batches.begin();
       !(batch == batches.end()) && steps < kMostSteps && total_us < kMostStepsUs; ++steps) {
    const std::uint64_t start = clock_.now();
    strategy.run([&](const Tensor& /*mine*/) { busy_loop_(compute_us); }, *batch);
    const std::uint64_t computed = clock_.now();
    ++batch;
    const std::uint64_t end = clock_.now();
    total_us += clock_.microseconds(end - start);
    waiting_us += clock_.microseconds(end - computed);
  }
  return waiting_us / total_us;
}

InputResult InputBench::measure() {
  result_.record_bytes = options_.record_bytes;
  result_.file_bytes = options_.file_mib << 20;
  result_.loops = options_.loops;
  for (const Source& source : sources()) {
    if (!source.path.empty()) measure_read(source);
    measure_alone(source, std::nullopt);
    const double batch_us = measure_alone(source, options_.batch);
    for (const Strategy* strategy : std::initializer_list<const Strategy*>{&one_, &two_})
      measure_distributed(source, *strategy, batch_us);
  }
  return std::move(result_);
}

}  // namespace

InputResult measure(const InputBenchOptions& options, const CommandContext& context) {
  return InputBench(options, context.clock).measure();
}

}  // namespace cohort::bench
