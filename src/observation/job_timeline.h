// A process's part in the job's timeline. The first of each node draws the calls of its members into a file;
// the spans of programs go to the chief, which closes its file last, when all have told theirs, and makes one
// file of those of all nodes. One thread at a time; `hear` may be called by any.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/worker.h>

#include "chief_clock.h"
#include "span_notes.h"
#include "timeline.h"

namespace cohort {

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
