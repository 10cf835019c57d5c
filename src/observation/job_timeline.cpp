#include "job_timeline.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "base/timeline_spans.h"

namespace cohort {
namespace {

/// A program may end more spans than that between two readings; the rest is told with the next ones.
constexpr std::size_t kMostSpansTold = 512;

}  // namespace

JobTimeline::JobTimeline(std::string file, std::vector<WorkerInfo> workers, int rank, const ChiefClock& clock,
                         TellChief tell_chief)
    : file_(std::move(file)),
      workers_(std::move(workers)),
      rank_(rank),
      clock_(clock),
      tell_chief_(std::move(tell_chief)) {
  TimelineSpans::of_this_process().keep(true);
  const WorkerInfo& self = workers_[static_cast<std::size_t>(rank_)];
  // The first of a node draws for all of it, whoever is the first member of a communicator.
  if (self.local_rank != 0) return;
  try {
    drawn_ = std::make_unique<Timeline>(part_of(rank_));
  } catch (const Error& error) {
    logging::warning("{}", error.what());
    return;
  }
  for (const WorkerInfo& worker : workers_) {
    if (worker.node == self.node) drawn_->add_worker(worker);
  }
}

JobTimeline::~JobTimeline() {
  TimelineSpans::of_this_process().keep(false);
  if (drawn_) drawn_->finish();
}

bool JobTimeline::is_on_one_node() const {
  return std::ranges::max(workers_, {}, &WorkerInfo::node).node == 0;
}

std::string JobTimeline::part_of(int worker) const {
  return is_on_one_node() ? file_ : fmt::format("{}.worker-{}", file_, worker);
}

void JobTimeline::take_spans() { take_spans(kMostSpansTold); }

void JobTimeline::take_spans(std::size_t most) {
  std::vector<WorkerSpan> spans;
  for (FinishedSpan& span : TimelineSpans::of_this_process().take(most)) {
    span.begin = clock_.to_chief(span.begin);
    span.end = clock_.to_chief(span.end);
    spans.push_back({rank_, std::move(span)});
  }
  if (rank_ != 0) {
    for (std::string& note : to_notes(spans)) tell_chief_(std::move(note));
    return;
  }
  if (!drawn_) return;
  for (const WorkerSpan& span : spans) drawn_->add(span);
  draw_heard_spans();
}

bool JobTimeline::hear(std::string_view note) {
  const auto spans = spans_of_note(note);
  if (!spans) return false;
  const std::lock_guard lock(hearing_);
  if (drawn_) heard_.insert(heard_.end(), spans->begin(), spans->end());
  return true;
}

void JobTimeline::draw_heard_spans() {
  std::vector<WorkerSpan> spans;
  {
    const std::lock_guard lock(hearing_);
    spans.swap(heard_);
  }
  for (const WorkerSpan& span : spans) drawn_->add(span);
}

void JobTimeline::stop() {
  take_spans(std::numeric_limits<std::size_t>::max());
  TimelineSpans& spans = TimelineSpans::of_this_process();
  if (const std::uint64_t lost = spans.lost(); lost > 0)
    logging::warning("{} spans of this worker's program are missing in the timeline: there were too many",
                     lost);
  spans.keep(false);
  if (drawn_ && rank_ != 0) drawn_->finish();
}

void JobTimeline::conclude() {
  if (!drawn_) return;
  draw_heard_spans();
  drawn_->finish();
  if (is_on_one_node()) return;
  try {
    merge();
  } catch (const std::exception& error) {
    logging::warning("the timelines of the nodes are not made one: {}", error.what());
  }
}

/// Of the nodes whose files can be seen here.
void JobTimeline::merge() {
  std::vector<std::string> parts;
  for (const WorkerInfo& worker : workers_) {
    const std::string part = part_of(worker.rank);
    if (worker.local_rank == 0 && std::filesystem::exists(part)) parts.push_back(part);
  }
  merge_timelines(parts, file_);
  for (const std::string& part : parts) std::filesystem::remove(part);
}

}  // namespace cohort
