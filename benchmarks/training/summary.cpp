#include "training.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <thread>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/summary/summary_writer.h>

#include "timing.h"

namespace cohort::bench {
namespace {

constexpr int kScalars = 2'000;    // in a loop; all fit into the queue
constexpr int kWritten = 100'000;  // in a loop that waits until they are in the file
constexpr int kHistograms = 4;     // in a loop
constexpr std::int64_t kValues = 1'000'000;
constexpr std::chrono::milliseconds kSlowFlush{20};

/// A folder of this run, removed with all that is in it.
class Folder {
 public:
  explicit Folder(const std::string& parent) {
    std::string path =
        ((parent.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(parent)) /
         "cohort-bench-summary-XXXXXX")
            .string();
    if (::mkdtemp(path.data()) == nullptr) throw Unavailable("cannot make a folder '{}'", path);
    path_ = path;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// A disk that takes its time.
class SlowSink final : public SummarySink {
 public:
  void write(const SummaryValue& /*value*/) override {}
  void restart(std::int64_t /*step*/, double /*wall_time*/) override {}
  void flush() override { std::this_thread::sleep_for(kSlowFlush); }
};

SummaryWriter slow_writer(const SummaryWriterOptions& options) {
  return SummaryWriter(
      [] {
        std::vector<std::unique_ptr<SummarySink>> sinks;
        sinks.push_back(std::make_unique<SlowSink>());
        return sinks;
      },
      options);
}

Tensor weights() {
  Tensor values = Tensor::uninitialized({kValues}, DType::kFloat32);
  for (std::size_t i = 0; i < values.elements(); ++i)
    values.span<float>()[i] = std::sin(static_cast<float>(i % 10'007));
  return values;
}

class SummaryBench {
 public:
  SummaryBench(const SummaryBenchOptions& options, const TickClock& clock)
      : options_(options), clock_(clock) {}

  /// `record(values)` is timed, and `then` is not.
  template <class Record, class Then>
  void add(std::string name, int values, Record record, Then then) {
    std::vector<double> us;
    for (int loop = 0; loop <= options_.loops; ++loop) {
      const std::uint64_t start = clock_.now();
      record(values);
      const double duration = clock_.microseconds(clock_.now() - start);
      then();
      if (loop > 0) us.push_back(duration / values);  // the first one touches the memory
    }
    result_.rows.push_back({std::move(name), median(us)});
  }

  [[nodiscard]] SummaryResult result() && {
    result_.loops = options_.loops;
    return std::move(result_);
  }

 private:
  const SummaryBenchOptions& options_;
  const TickClock& clock_;
  SummaryResult result_;
};

void record_scalars(SummaryWriter& writer, int values) {
  for (int step = 0; step < values; ++step) writer.scalar("train/loss", 0.5 * step, step);
}

}  // namespace

SummaryResult measure(const SummaryBenchOptions& options, const CommandContext& context) {
  const Folder folder(options.folder);
  SummaryBench bench(options, context.clock);
  SummaryWriter writer(folder.path(), {.max_queue = kScalars});
  const auto flush = [&] { writer.flush(); };
  const auto nothing = [] {};
  bench.add(
      "scalar", kScalars, [&](int values) { record_scalars(writer, values); }, flush);

  SummaryWriter slow = slow_writer({.max_queue = kScalars / 4});
  bench.add(
      "scalar during a flush of 20 ms", kScalars / 4, [&](int values) { record_scalars(slow, values); },
      [&] { std::this_thread::sleep_for(kSlowFlush); });

  SummaryWriter usual(folder.path());
  bench.add(
      "scalar with its writing", kWritten,
      [&](int values) {
        record_scalars(usual, values);
        usual.flush();
      },
      nothing);

  const Tensor values = weights();
  bench.add(
      "histogram of 10^6 values", kHistograms,
      [&](int histograms) {
        for (int step = 0; step < histograms; ++step) writer.histogram("weights", values, step);
      },
      flush);
  return std::move(bench).result();
}

}  // namespace cohort::bench
