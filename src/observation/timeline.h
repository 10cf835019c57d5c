// A picture of a job's calls in time, as JSON that Perfetto and chrome://tracing open: the JSON Array Format
// of Chrome's trace events, an event a line. Each worker is a process of the picture, with a track for what
// the program does between calls, one for each communicator, and one for each thread whose program has spans.
// One thread at a time.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/worker.h>

#include "observed_call.h"
#include "span_notes.h"

namespace cohort {

class Timeline {
 public:
  /// @throws Unavailable when the file cannot be made.
  explicit Timeline(const std::string& path);

  /// A worker that the picture is about.
  void add_worker(const WorkerInfo& worker);

  void add(std::string_view communicator, const ObservedCall& call);

  void add(const WorkerSpan& of_worker);

  /// The times that follow are right to so many nanoseconds, among the workers of all nodes; negative: nobody
  /// knows. The file says the worst of them.
  void note_clock_error(std::int64_t error) noexcept;

  /// Completes the file. What could not be written is a warning.
  void finish() noexcept;

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  struct Span;

  void write(const Span& span);
  void write(std::string_view event);
  void name_track(int worker, int track, std::string_view name);
  [[nodiscard]] int track_of(std::string_view communicator, const ObservedCall& call);

  void write_clock_error();

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  bool is_empty_ = true;
  std::vector<int> workers_;
  std::int64_t clock_error_ = 0;
  std::map<std::string, int, std::less<>> tracks_;    ///< by communicator, the same for all workers
  std::map<std::pair<int, int>, std::int64_t> ends_;  ///< of what the tracks of workers have so far
};

/// Makes one file of those of several nodes.
/// @throws Unavailable, InvalidArgument for what is no timeline.
void merge_timelines(std::span<const std::string> parts, const std::string& path);

}  // namespace cohort
