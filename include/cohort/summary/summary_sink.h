// A SummarySink is a file, or several, that a SummaryWriter writes to. The writer's own thread calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <cohort/summary/summary_value.h>

namespace cohort {

class SummarySink {
 public:
  SummarySink() = default;
  virtual ~SummarySink() = default;
  SummarySink(const SummarySink&) = delete;
  SummarySink& operator=(const SummarySink&) = delete;

  /// May keep the value in memory until `flush`.
  virtual void write(const SummaryValue& value) = 0;

  /// A training goes on from `step`: readers leave out what earlier runs wrote of this step and later ones.
  virtual void restart(std::int64_t step, double wall_time) = 0;

  /// Gives everything to the operating system: it outlives the process, though not the machine.
  /// @throws Unavailable naming the file; it then has what the flushes before have written.
  virtual void flush() = 0;

  /// Called once, after the last flush. @throws Unavailable naming the file, where the system says only now
  /// that it is not written, as network file systems do.
  virtual void close() {}
};

struct EventFileOptions {
  std::string suffix = ".v2";  ///< of the file's name
};

/// A new file `events.out.tfevents.TIME.HOST.PROCESS.NUMBER.v2` in `folder`, which is made if need be, for
/// TensorBoard. Scalars are float32 there.
/// @throws Unavailable when folder or file cannot be made.
[[nodiscard]] std::unique_ptr<SummarySink> event_file_sink(const std::string& folder,
                                                           const EventFileOptions& options = {});

/// A JSON object in each line: `{"step":3,"wall_time":1.5,"tag":"loss","value":0.5}`. Tensors are lists;
/// numbers that JSON lacks are the strings "NaN", "Infinity" and "-Infinity". Added to the end of the file,
/// or, after a restart, to what it has of earlier steps. @throws Unavailable when it cannot be opened.
[[nodiscard]] std::unique_ptr<SummarySink> json_lines_sink(std::string path);

/// Lines `step,wall_time,tag,value` below a header; what is no number is in JSON, quoted. Otherwise as
/// json_lines_sink. @throws Unavailable when it cannot be opened.
[[nodiscard]] std::unique_ptr<SummarySink> csv_sink(std::string path);

}  // namespace cohort
