#include <unistd.h>

#include <atomic>
#include <span>
#include <string>

#include <fmt/format.h>

#include <cohort/summary/summary_sink.h>

#include "base/host_name.h"
#include "input/files/tf_record_frame.h"
#include "summary/event_message.h"
#include "summary/log_file.h"
#include "summary/wall_time.h"

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

}  // namespace cohort
