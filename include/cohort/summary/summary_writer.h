// A SummaryWriter records how a training goes, for TensorBoard and other readers: scalars, histograms, texts
// and hyperparameters, at steps.
//
//     SummaryWriter writer("logs");                     // an event file; other files: summary_sink.h
//     writer.scalar("loss", loss, step);
//     writer.close();
//
// Make it in the scope of the strategy. Then every replica and every worker may call it; only the first
// replica of the chief writes, and outside replicas only the chief. There it has a thread, so that callers
// wait for the disk only where they are faster than it by a whole queue. Nothing is lost in silence: what
// could not be written is an error of the next call. Any number of threads may call at the same time, except
// close and the destructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/strategy/strategy.h>
#include <cohort/summary/summary_sink.h>

namespace cohort {

struct SummaryWriterOptions {
  std::size_t max_queue = 256;  ///< so many values are written together
  double flush_seconds = 10;    ///< and what is there when so much time has gone by
};

using Hyperparameter = std::variant<double, std::int64_t, bool, std::string>;
using Hyperparameters = std::vector<std::pair<std::string, Hyperparameter>>;

class SummaryWriter {
 public:
  /// Records nothing.
  SummaryWriter();

  /// Writes an event file in `folder`. @throws Unavailable when it cannot be made.
  explicit SummaryWriter(const std::string& folder, const SummaryWriterOptions& options = {});

  using MakeSinks = std::function<std::vector<std::unique_ptr<SummarySink>>()>;

  /// Writes to what `make` returns, which is called only where something is written.
  /// @throws InvalidArgument for no sink, a null one, a queue of 0, or a time that is not positive; what
  /// `make` throws.
  explicit SummaryWriter(const MakeSinks& make, const SummaryWriterOptions& options = {});

  /// As close, but what fails is logged.
  ~SummaryWriter();
  SummaryWriter(SummaryWriter&& other) noexcept;
  SummaryWriter& operator=(SummaryWriter&& other) = delete;

  // Each returns whether it recorded the value: not in other replicas and processes, nor where record_if
  // says no. Without a step, it is the one of set_step. The same tag may be recorded again at the same step.
  // @throws InvalidArgument without any step; WrongContext after close; Unavailable when a file could not
  // be written, now or earlier.

  bool scalar(std::string_view tag, double value, std::optional<std::int64_t> step = {},
              std::string_view description = {});

  /// A scalar tensor of any dtype. @throws InvalidArgument for another shape.
  bool scalar(std::string_view tag, const Tensor& value, std::optional<std::int64_t> step = {});

  /// How many of the values lie in each of `buckets` intervals of one width, between the smallest and the
  /// largest. Values that are not finite are left out. @throws InvalidArgument for fewer than 1 bucket.
  bool histogram(std::string_view tag, const Tensor& values, std::optional<std::int64_t> step = {},
                 int buckets = 30);

  /// Markdown.
  bool text(std::string_view tag, std::string_view text, std::optional<std::int64_t> step = {});
  bool text(std::string_view tag, const std::vector<std::string>& texts,
            std::optional<std::int64_t> step = {});

  /// Any tensor, copied.
  bool tensor(std::string_view tag, const Tensor& value, std::optional<std::int64_t> step = {},
              const SummaryMetadata& metadata = {});

  /// What this run was started with, for TensorBoard's table of runs. close records that it has ended, well
  /// or, while an exception is on its way, badly.
  bool hyperparameters(const Hyperparameters& values);

  /// A training goes on from `step`: what files have of it and of later steps does not count any more.
  void restart(std::int64_t step);

  /// The step of calls that name none. A function is asked in each of them.
  void set_step(std::int64_t step);
  void set_step(std::function<std::int64_t()> step);

  /// Asked in each call; without it, all is recorded. Before other threads call.
  void record_if(std::function<bool()> condition);

  /// Waits until all is written. @throws Unavailable as the others.
  void flush();

  /// Writes all and ends; a second call does nothing. @throws Unavailable as the others.
  void close();

 private:
  class Queue;

  template <class Fill>
  void add(std::string_view tag, std::optional<std::int64_t> step, Fill fill);
  [[nodiscard]] bool writes() const;
  [[nodiscard]] bool records() const { return writes() && (!condition_ || condition_()); }
  [[nodiscard]] std::int64_t step_or_default(std::optional<std::int64_t> step) const;
  void end_session();

  std::unique_ptr<Queue> queue_;  ///< null where nothing is written
  std::function<std::int64_t()> step_;
  std::function<bool()> condition_;
  bool has_session_ = false;
};

}  // namespace cohort
