// A picture of a job's calls in time, as JSON that Perfetto and chrome://tracing open: the JSON Array Format
// of Chrome's trace events, an event a line. Each worker is a process of the picture, with a track for what
// the program does between calls and one for each communicator. One thread at a time.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <cohort/cluster/worker.h>

#include "observed_call.h"

namespace cohort {

class Timeline {
 public:
  /// @throws Unavailable when the file cannot be made.
  explicit Timeline(const std::string& path);

  /// A worker that the picture is about.
  void add_worker(const WorkerInfo& worker);

  void add(std::string_view communicator, const ObservedCall& call);

  /// Completes the file. What could not be written is a warning.
  void finish() noexcept;

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  struct Span;

  void write(const Span& span);
  void write(std::string_view event);
  [[nodiscard]] int track_of(std::string_view communicator, const ObservedCall& call);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  bool is_empty_ = true;
  std::map<std::string, int, std::less<>> tracks_;    ///< by communicator, the same for all workers
  std::map<std::pair<int, int>, std::int64_t> ends_;  ///< of what the tracks of workers have so far
};

/// Makes one file of those of several nodes, whose times `offsets` (nanoseconds, by part) brings to one
/// clock.
/// @throws Unavailable, InvalidArgument for what is no timeline.
void merge_timelines(std::span<const std::string> parts, std::span<const std::int64_t> offsets,
                     const std::string& path);

}  // namespace cohort
