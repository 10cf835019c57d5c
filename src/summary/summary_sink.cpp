#include <cohort/summary/summary_sink.h>

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/clocks.h"
#include "base/json.h"
#include "base/system_calls.h"
#include "event_message.h"
#include "input/files/foreign_data.h"
#include "log_file.h"

namespace cohort {
namespace {

/// TensorBoard wants `tfevents` and a time; the rest keeps files of one folder apart.
std::string new_name(const EventFileOptions& options) {
  static std::atomic<int> files = 0;
  return fmt::format("events.out.tfevents.{:010d}.{}.{}.{}{}", static_cast<std::int64_t>(wall_time()),
                     host_name(), ::getpid(), files++, options.suffix);
}

class EventFileSink final : public SummarySink {
 public:
  EventFileSink(const std::string& folder, const EventFileOptions& options)
      : file_(folder + "/" + new_name(options), LogFile::Begin::kNew) {
    append(version_event(wall_time()));
    file_.flush();
  }

  void write(const SummaryValue& value) override { append(value_event(value)); }
  /// Twice: TensorBoard takes the first one that it finds in a folder for the beginning of all, and leaves
  /// out nothing.
  void restart(std::int64_t step, double time) override {
    append(restart_event(step, time));
    append(restart_event(step, time));
  }
  void flush() override { file_.flush(); }
  void close() override { file_.close(); }

 private:
  void append(const std::string& event) {
    const detail::TfRecordFrame frame = detail::frame_of(std::as_bytes(std::span(event)));
    file_.append({reinterpret_cast<const char*>(frame.header.data()), frame.header.size()});
    file_.append(event);
    file_.append({reinterpret_cast<const char*>(frame.footer.data()), frame.footer.size()});
  }

  LogFile file_;
};

}  // namespace

std::unique_ptr<SummarySink> event_file_sink(const std::string& folder, const EventFileOptions& options) {
  return std::make_unique<EventFileSink>(folder, options);
}

namespace {

// Summaries as lines of text: JSON and CSV.

constexpr std::string_view kHeader = "step,wall_time,tag,value\n";

/// Whether a line that has its step after `prefix` is of an earlier step than `step`.
bool is_before(std::string_view line, std::string_view prefix, std::int64_t step) {
  std::int64_t own = 0;
  if (!line.starts_with(prefix)) return true;
  line.remove_prefix(prefix.size());
  return std::from_chars(line.data(), line.data() + line.size(), own).ec != std::errc() || own < step;
}

class TextSink : public SummarySink {
 public:
  TextSink(std::string path, std::string_view before_step)
      : file_(std::move(path), LogFile::Begin::kAtEnd), before_step_(before_step) {}

  void write(const SummaryValue& value) override {
    line_.clear();
    append_line(value);
    file_.append(line_);
  }

  void restart(std::int64_t step, double /*wall_time*/) override {
    file_.keep_lines([&](std::string_view line) { return is_before(line, before_step_, step); });
  }

  void flush() override { file_.flush(); }
  void close() override { file_.close(); }

 protected:
  virtual void append_line(const SummaryValue& value) = 0;

  LogFile file_;
  std::string line_;

 private:
  std::string_view before_step_;
};

class JsonLinesSink final : public TextSink {
 public:
  explicit JsonLinesSink(std::string path) : TextSink(std::move(path), R"({"step":)") {}

 private:
  void append_line(const SummaryValue& value) override {
    fmt::format_to(std::back_inserter(line_), R"({{"step":{},"wall_time":{:.6f},"tag":)", value.step,
                   value.wall_time);
    append_quoted(line_, value.tag, BadUtf8::kLatin1);
    line_ += ",\"value\":";
    append_json(line_, value);
    line_ += "}\n";
  }
};

class CsvSink final : public TextSink {
 public:
  explicit CsvSink(std::string path) : TextSink(std::move(path), "") {
    if (file_.is_empty()) file_.append(kHeader);
    file_.flush();
    if (!file_.read().starts_with(kHeader))
      throw Unavailable("cannot add to the log '{}': it is a table of other columns; name another file",
                        file_.path());
  }

 private:
  void append_line(const SummaryValue& value) override {
    fmt::format_to(std::back_inserter(line_), "{},{:.6f},", value.step, value.wall_time);
    append_csv(line_, value.tag, ',');
    line_ += ',';
    if (const double* scalar = value.scalar()) {
      fmt::format_to(std::back_inserter(line_), "{}\n", *scalar);
      return;
    }
    std::string json;
    append_json(json, value);
    append_csv(line_, json, ',');
    line_ += '\n';
  }
};

}  // namespace

std::unique_ptr<SummarySink> json_lines_sink(std::string path) {
  return std::make_unique<JsonLinesSink>(std::move(path));
}

std::unique_ptr<SummarySink> csv_sink(std::string path) { return std::make_unique<CsvSink>(std::move(path)); }

}  // namespace cohort
