#include <cohort/summary/summary_writer.h>

#include <exception>
#include <utility>

#include <cohort/base/log.h>
#include <cohort/strategy/replica_context.h>
#include <cohort/value/context.h>

#include "base/clocks.h"
#include "event_message.h"
#include "summary/event_message.h"
#include "summary/summary_queue.h"

namespace cohort {
namespace {

/// Whether this thread is neither a replica nor an update, or that of the first replica.
bool is_first_replica() {
  const ContextMode& mode = current_mode();
  if (mode.replica != nullptr) return mode.replica->replica_id_in_sync_group() == 0;
  return mode.local_replica <= 0;
}

void require_usable(const std::vector<std::unique_ptr<SummarySink>>& sinks,
                    const SummaryWriterOptions& options) {
  if (sinks.empty()) throw InvalidArgument("SummaryWriter: no sink; SummaryWriter() records nothing");
  for (const auto& sink : sinks)
    if (sink == nullptr) throw InvalidArgument("SummaryWriter: a sink is null");
  if (options.max_queue == 0) throw InvalidArgument("SummaryWriter: max_queue is 0; 1 writes at once");
  if (!(options.flush_seconds > 0))
    throw InvalidArgument("SummaryWriter: flush_seconds is {}, and must be positive", options.flush_seconds);
}

/// Assigned to in place, so that entries that had a scalar before take another without asking for memory.
void set_metadata(SummaryMetadata& metadata, std::string_view plugin, std::string_view content,
                  std::string_view description) {
  metadata.plugin.assign(plugin);
  metadata.content.assign(content);
  metadata.description.assign(description);
}

constexpr std::string_view kHyperparameters = "hparams";

/// The plugin reads the content alone, but each tag has a value.
void fill_session(SummaryValue& entry, std::string_view content) {
  set_metadata(entry.metadata, kHyperparameters, content, {});
  entry.value = 0.0;
}

}  // namespace

SummaryWriter::SummaryWriter(const std::string& folder, const SummaryWriterOptions& options)
    : SummaryWriter(
          [&] {
            std::vector<std::unique_ptr<SummarySink>> sinks;
            sinks.push_back(event_file_sink(folder));
            return sinks;
          },
          options) {}

SummaryWriter::SummaryWriter(const MakeSinks& make, const SummaryWriterOptions& options) {
  if (!get_strategy().extended().should_save_summary() || !is_first_replica()) return;
  auto sinks = make();
  require_usable(sinks, options);
  queue_ = std::make_unique<Queue>(std::move(sinks), options);
}

SummaryWriter::SummaryWriter() = default;

SummaryWriter::~SummaryWriter() {
  try {
    close();
  } catch (const std::exception& error) {
    logging::error("{}", error.what());
  }
}

SummaryWriter::SummaryWriter(SummaryWriter&& other) noexcept = default;

bool SummaryWriter::writes() const {
  if (queue_ == nullptr || !is_first_replica()) return false;
  if (queue_->is_closed())
    throw WrongContext("this SummaryWriter was closed, and records nothing any more; make another one");
  return true;
}

std::int64_t SummaryWriter::step_or_default(std::optional<std::int64_t> step) const {
  if (step) return *step;
  if (step_) return step_();
  throw InvalidArgument("a summary without a step: pass one, or call set_step before");
}

/// `fill` sets metadata and value, and is short: other threads wait for it.
template <class Fill>
void SummaryWriter::add(std::string_view tag, std::optional<std::int64_t> step, Fill fill) {
  const std::int64_t own_step = step_or_default(step);
  const double now = wall_time();
  queue_->add([&](Queue::Entry& entry) {
    entry.is_restart = false;
    entry.value.tag.assign(tag);
    entry.value.step = own_step;
    entry.value.wall_time = now;
    entry.value.is_single = false;
    fill(entry.value);
  });
}

bool SummaryWriter::scalar(std::string_view tag, double value, std::optional<std::int64_t> step,
                           std::string_view description) {
  if (!records()) return false;
  add(tag, step, [&](SummaryValue& entry) {
    set_metadata(entry.metadata, "scalars", {}, description);
    entry.value = value;
  });
  return true;
}

bool SummaryWriter::scalar(std::string_view tag, const Tensor& value, std::optional<std::int64_t> step) {
  if (value.shape().rank() != 0)
    throw InvalidArgument("scalar '{}': a tensor of {} axes is none; reduce it, or use `tensor`", tag,
                          value.shape().rank());
  return writes() && scalar(tag, value.on_host().cast(DType::kFloat64).item<double>(), step);
}

bool SummaryWriter::histogram(std::string_view tag, const Tensor& values, std::optional<std::int64_t> step,
                              int buckets) {
  if (!records()) return false;
  Tensor rows = histogram_of(values, buckets);
  add(tag, step, [&](SummaryValue& entry) {
    set_metadata(entry.metadata, "histograms", {}, {});
    entry.value = std::move(rows);
  });
  return true;
}

bool SummaryWriter::text(std::string_view tag, std::string_view text, std::optional<std::int64_t> step) {
  if (!records()) return false;
  std::vector texts{std::string(text)};
  add(tag, step, [&](SummaryValue& entry) {
    set_metadata(entry.metadata, "text", {}, {});
    entry.value = std::move(texts);
    entry.is_single = true;
  });
  return true;
}

bool SummaryWriter::text(std::string_view tag, const std::vector<std::string>& texts,
                         std::optional<std::int64_t> step) {
  if (!records()) return false;
  std::vector<std::string> copies = texts;
  add(tag, step, [&](SummaryValue& entry) {
    set_metadata(entry.metadata, "text", {}, {});
    entry.value = std::move(copies);
  });
  return true;
}

bool SummaryWriter::tensor(std::string_view tag, const Tensor& value, std::optional<std::int64_t> step,
                           const SummaryMetadata& metadata) {
  if (!records()) return false;
  Tensor copy = value.on_host().clone();
  add(tag, step, [&](SummaryValue& entry) {
    entry.metadata = metadata;
    entry.value = std::move(copy);
  });
  return true;
}

bool SummaryWriter::hyperparameters(const Hyperparameters& values) {
  if (!records()) return false;
  const std::string content = session_start(values, wall_time());
  add("_hparams_/session_start_info", 0, [&](SummaryValue& entry) { fill_session(entry, content); });
  has_session_ = true;
  return true;
}

void SummaryWriter::end_session() {
  has_session_ = false;
  const std::string content = session_end(std::uncaught_exceptions() == 0, wall_time());
  add("_hparams_/session_end_info", 0, [&](SummaryValue& entry) { fill_session(entry, content); });
}

void SummaryWriter::restart(std::int64_t step) {
  if (!writes()) return;
  const double now = wall_time();
  queue_->add([&](Queue::Entry& entry) {
    entry.is_restart = true;
    entry.value.step = step;
    entry.value.wall_time = now;
  });
}

void SummaryWriter::set_step(std::int64_t step) {
  step_ = [step] { return step; };
}
void SummaryWriter::set_step(std::function<std::int64_t()> step) { step_ = std::move(step); }

void SummaryWriter::record_if(std::function<bool()> condition) { condition_ = std::move(condition); }

void SummaryWriter::flush() {
  if (writes()) queue_->flush();
}

void SummaryWriter::close() {
  if (queue_ == nullptr || queue_->is_closed()) return;
  if (has_session_) end_session();
  queue_->close();
}

}  // namespace cohort
