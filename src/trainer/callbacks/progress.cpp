#include <cohort/trainer/callbacks/progress.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

#include <unistd.h>

namespace cohort {
namespace {

constexpr std::int64_t kBarCharacters = 20;

bool is_line(const ProgressOptions& options) {
  if (options.style != ProgressStyle::kAuto) return options.style == ProgressStyle::kLine;
  return isatty(fileno(options.stream)) != 0;
}

void append_bar(fmt::memory_buffer& text, std::int64_t done, std::int64_t steps) {
  const std::int64_t filled = std::clamp<std::int64_t>(done * kBarCharacters / steps, 0, kBarCharacters);
  text.append(std::string_view(" ["));
  for (std::int64_t i = 0; i < kBarCharacters; ++i)
    text.push_back(i < filled ? '=' : i == filled ? '>' : ' ');
  text.push_back(']');
}

void append_logs(fmt::memory_buffer& text, const Logs& logs, const char* separator) {
  for (const auto& [name, value] : logs)
    fmt::format_to(std::back_inserter(text), "{}{} {:.4g}", separator, name, value);
}

/// As 7:05, or 1:07:05.
void append_time(fmt::memory_buffer& text, double seconds) {
  const auto all = std::llround(seconds);
  const std::int64_t hours = all / 3600;
  if (hours > 0)
    fmt::format_to(std::back_inserter(text), "{}:{:02}:{:02}", hours, all / 60 % 60, all % 60);
  else
    fmt::format_to(std::back_inserter(text), "{}:{:02}", all / 60, all % 60);
}

void append_duration(fmt::memory_buffer& text, double seconds) {
  if (seconds >= 1)
    fmt::format_to(std::back_inserter(text), "{:.3g} s", seconds);
  else if (seconds >= 1e-3)
    fmt::format_to(std::back_inserter(text), "{:.3g} ms", seconds * 1e3);
  else
    fmt::format_to(std::back_inserter(text), "{:.3g} us", seconds * 1e6);
}

}  // namespace

Progress::Progress(const ProgressOptions& options)
    : options_(options), is_line_(is_line(options)), rhythm_(options.seconds.value_or(is_line_ ? 0.1 : 10)) {
  if (!(rhythm_.count() >= 0))
    throw InvalidArgument("Progress: {} seconds between drawings must not be negative", rhythm_.count());
}

bool Progress::needs_batch_logs() const {
  return options_.batch_logs.value_or(training().strategy().num_replicas_in_sync() ==
                                      training().strategy().extended().local_replicas());
}

void Progress::on_epoch_begin(int epoch, const Logs& /*logs*/) {
  epoch_ = epoch;
  first_batch_ = -1;
  done_ = 0;
  begin_ = Clock::now();
  next_ = begin_ + std::chrono::duration_cast<Clock::duration>(rhythm_);
  drawn_ = 0;
}

void Progress::on_train_batch_end(std::int64_t batch, const Logs& logs) {
  if (first_batch_ < 0) first_batch_ = batch;
  done_ = batch + 1;
  const Clock::time_point now = Clock::now();
  if (now < next_ || !training().reports()) return;
  next_ = now + std::chrono::duration_cast<Clock::duration>(rhythm_);
  if (is_line_)
    draw_line(done_, logs, now);
  else
    write_plain(done_, logs, now);
}

void Progress::draw_line(std::int64_t done, const Logs& logs, Clock::time_point now) {
  const TrainingParams& params = training().params();
  text_.push_back('\r');
  fmt::format_to(std::back_inserter(text_), "epoch {}/{}  {}", epoch_ + 1, params.epochs, done);
  if (params.steps) {
    fmt::format_to(std::back_inserter(text_), "/{}", *params.steps);
    append_bar(text_, done, *params.steps);
  }
  append_logs(text_, logs, "  ");
  append_pace(done, now, "  ");
  const std::size_t length = text_.size() - 1;
  for (std::size_t i = length; i < drawn_; ++i) text_.push_back(' ');  // over the rest of a longer line
  drawn_ = length;
  write();
}

void Progress::write_plain(std::int64_t done, const Logs& logs, Clock::time_point now) {
  const TrainingParams& params = training().params();
  fmt::format_to(std::back_inserter(text_), "epoch {}/{}: step {}", epoch_ + 1, params.epochs, done);
  if (params.steps) fmt::format_to(std::back_inserter(text_), "/{}", *params.steps);
  append_logs(text_, logs, ", ");
  append_pace(done, now, ", ");
  text_.push_back('\n');
  write();
}

void Progress::append_pace(std::int64_t done, Clock::time_point now, const char* separator) {
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double pace = seconds / static_cast<double>(done - first_batch_);
  text_.append(std::string_view(separator));
  append_duration(text_, pace);
  text_.append(std::string_view("/step"));
  if (!training().params().steps) return;
  text_.append(std::string_view(separator));
  append_time(text_,
              pace * static_cast<double>(std::max<std::int64_t>(*training().params().steps - done, 0)));
  text_.append(std::string_view(" left"));
}

void Progress::on_epoch_end(int /*epoch*/, Logs& logs) {
  if (training().reports()) write_epoch(logs, Clock::now());
}

void Progress::write_epoch(const Logs& logs, Clock::time_point now) {
  if (is_line_) text_.push_back('\r');
  fmt::format_to(std::back_inserter(text_), "epoch {}/{}: {} steps in ", epoch_ + 1,
                 training().params().epochs, done_);
  append_duration(text_, std::chrono::duration<double>(now - begin_).count());
  append_logs(text_, logs, ", ");
  for (std::size_t i = text_.size(); i <= drawn_; ++i) text_.push_back(' ');
  text_.push_back('\n');
  write();
}

void Progress::write() {
  std::fwrite(text_.data(), 1, text_.size(), options_.stream);
  std::fflush(options_.stream);
  text_.clear();
}

}  // namespace cohort
