#include "input/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/input/distribute.h>
#include <cohort/input/files/csv.h>
#include <cohort/input/files/fixed_length_record.h>
#include <cohort/input/files/npy.h>
#include <cohort/input/files/tf_record.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

#include "busy_loop.h"
#include "timing.h"
#include "value_table.h"

namespace cohort::bench {
namespace {

/// The files that are read, all of about the same size and of elements of the same number of bytes.
class InputFiles {
 public:
  /// Writes them. @throws Unavailable naming the file that cannot be written.
  explicit InputFiles(const InputBenchOptions& options);
  /// Removes them.
  ~InputFiles();
  InputFiles(const InputFiles&) = delete;
  InputFiles& operator=(const InputFiles&) = delete;

  [[nodiscard]] std::string csv() const { return path("records.csv"); }
  [[nodiscard]] std::string npy() const { return path("records.npy"); }
  [[nodiscard]] std::string tf_record() const { return path("records.tfrecord"); }
  [[nodiscard]] std::string fixed_length() const { return path("records.bin"); }

  /// In each file.
  [[nodiscard]] std::int64_t elements() const { return elements_; }

 private:
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
  void write_csv(std::int64_t columns) const;
  void write_npy(std::int64_t columns) const;
  void write_records(std::int64_t bytes) const;

  std::filesystem::path folder_;
  std::int64_t elements_;
};

/// Of numbers in CSV, which have 7 characters and a delimiter.
constexpr std::int64_t kCsvFieldBytes = 8;

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  std::ofstream stream(path, std::ios::binary);
  write(stream);
  stream.close();
  if (!stream) throw Unavailable("cannot write '{}': {}", path, std::strerror(errno));
}

std::filesystem::path make_folder(const std::string& parent) {
  const std::filesystem::path where =
      parent.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(parent);
  std::string name = (where / "cohort-bench-input-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw Unavailable("cannot make a folder in '{}': {}", where.string(), std::strerror(errno));
  return name;
}

InputFiles::InputFiles(const InputBenchOptions& options)
    : folder_(make_folder(options.folder)), elements_((options.file_mib << 20) / options.record_bytes) {
  write_csv(options.record_bytes / kCsvFieldBytes);
  write_npy(options.record_bytes / static_cast<std::int64_t>(sizeof(float)));
  write_records(options.record_bytes);
}

InputFiles::~InputFiles() {
  std::error_code ignored;  // nothing can be done about it
  std::filesystem::remove_all(folder_, ignored);
}

void InputFiles::write_csv(std::int64_t columns) const {
  write_file(csv(), [&](std::ostream& stream) {
    std::string row;
    for (std::int64_t element = 0; element < elements_; ++element) {
      row.clear();
      for (std::int64_t column = 0; column < columns; ++column) {
        const auto digits = mixed_bits(0, static_cast<std::uint64_t>(element * columns + column)) % 1'000'000;
        fmt::format_to(std::back_inserter(row), "{}.{:05}{}", digits / 100'000, digits % 100'000,
                       column + 1 == columns ? '\n' : ',');
      }
      stream << row;
    }
  });
}

void InputFiles::write_npy(std::int64_t columns) const {
  write_file(npy(), [&](std::ostream& stream) {
    constexpr std::size_t kHeaderBytes = 128;
    constexpr std::size_t kPreambleBytes = 10;
    const std::string header = fmt::format(
        "{:<{}}\n",
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", elements_, columns),
        kHeaderBytes - kPreambleBytes - 1);
    stream << "\x93NUMPY\x01" << '\0' << static_cast<char>(header.size()) << '\0' << header;
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t element = 0; element < elements_; ++element) {
      std::fill(row.begin(), row.end(), static_cast<float>(element));
      stream.write(reinterpret_cast<const char*>(row.data()),
                   static_cast<std::streamsize>(row.size() * sizeof(float)));
    }
  });
}

void InputFiles::write_records(std::int64_t bytes) const {
  TfRecordWriter writer(tf_record());
  write_file(fixed_length(), [&](std::ostream& stream) {
    std::string record(static_cast<std::size_t>(bytes), '\0');
    for (std::int64_t element = 0; element < elements_; ++element) {
      for (std::size_t at = 0; at < record.size(); ++at)
        record[at] = static_cast<char>(element + static_cast<std::int64_t>(at));
      stream << record;
      writer.write(std::as_bytes(std::span(record)));
    }
  });
  writer.close();
}

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
