// A picture of a job's calls in time: the file, the spans of programs that workers tell the chief for it, and
// a process's part in it all.
#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/worker.h>

#include "base/timeline_spans.h"
#include "chief_clock.h"
#include "observed_call.h"

namespace cohort {

/// A span of a worker's program. Times are in nanoseconds of the chief's steady clock.
struct WorkerSpan {
  int worker = 0;
  FinishedSpan span = {};
};

/// What workers tell the chief: raw bytes, for the same program runs everywhere.
[[nodiscard]] std::vector<std::string> to_notes(std::span<const WorkerSpan> spans);

/// Nothing if the note is none of these.
[[nodiscard]] std::optional<std::vector<WorkerSpan>> spans_of_note(std::string_view note);

/// The picture as JSON that Perfetto and chrome://tracing open: the JSON Array Format of Chrome's trace
/// events, an event a line. Each worker is a process of the picture, with a track for what the program does
/// between calls, one for each communicator, and one for each thread whose program has spans. One thread at a
/// time.
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

/// A process's part in the job's timeline. The first of each node draws the calls of its members into a file;
/// the spans of programs go to the chief, which closes its file last, when all have told theirs, and makes
/// one file of those of all nodes. One thread at a time; `hear` may be called by any.
class JobTimeline {
 public:
  using TellChief = std::function<void(std::string note)>;

  /// `workers` by rank. The clock must outlive it. A file that cannot be made is a warning.
  JobTimeline(std::string file, std::vector<WorkerInfo> workers, int rank, const ChiefClock& clock,
              TellChief tell_chief);
  ~JobTimeline();

  /// Where this process draws calls; null: another one does, or the file cannot be made.
  [[nodiscard]] Timeline* calls() noexcept { return drawn_.get(); }

  /// Draws or tells the spans that this process's program has ended since.
  void take_spans();

  /// On the chief: whether the note was one of these.
  bool hear(std::string_view note);

  /// Nothing is drawn or told from here on, but on the chief what others tell.
  void stop();

  /// On the chief, after all have stopped.
  void conclude();

 private:
  [[nodiscard]] bool is_on_one_node() const;
  [[nodiscard]] std::string part_of(int worker) const;
  void take_spans(std::size_t most);
  void draw_heard_spans();
  void merge();

  const std::string file_;
  const std::vector<WorkerInfo> workers_;
  const int rank_;
  const ChiefClock& clock_;
  const TellChief tell_chief_;
  std::unique_ptr<Timeline> drawn_;

  std::mutex hearing_;
  std::vector<WorkerSpan> heard_;  ///< and not drawn yet
};

}  // namespace cohort
