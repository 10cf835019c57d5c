#include "timeline.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "base/json.h"
#include "base/timeline_spans.h"
#include "cluster/peer_watch.h"
#include "collective/record/call_record.h"

namespace cohort {
namespace {

constexpr std::string_view kSpanMark = "cohort: span\n";

struct Told {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int32_t worker = 0;
  std::int32_t thread = 0;
  std::array<char, 64> name{};
};

constexpr std::size_t kSpansInNote = (PeerWatch::kLongestNote - kSpanMark.size()) / sizeof(Told);

/// A program may end more spans than that between two readings; the rest is told with the next ones.
constexpr std::size_t kMostSpansTold = 512;

}  // namespace

std::vector<std::string> to_notes(std::span<const WorkerSpan> spans) {
  std::vector<std::string> notes;
  for (; !spans.empty(); spans = spans.subspan(std::min(spans.size(), kSpansInNote))) {
    std::string note(kSpanMark);
    for (const auto& [worker, span] : spans.first(std::min(spans.size(), kSpansInNote))) {
      Told told{.begin = span.begin, .end = span.end, .worker = worker, .thread = span.thread};
      span.name.copy(told.name.data(), told.name.size() - 1);
      note.append(reinterpret_cast<const char*>(&told), sizeof told);
    }
    notes.push_back(std::move(note));
  }
  return notes;
}

std::optional<std::vector<WorkerSpan>> spans_of_note(std::string_view note) {
  if (!note.starts_with(kSpanMark)) return std::nullopt;
  std::vector<WorkerSpan> spans;
  for (note.remove_prefix(kSpanMark.size()); note.size() >= sizeof(Told); note.remove_prefix(sizeof(Told))) {
    Told told;
    std::memcpy(&told, note.data(), sizeof told);
    told.name.back() = '\0';
    spans.push_back({told.worker, {told.name.data(), told.thread, told.begin, told.end}});
  }
  return spans;
}

namespace {

constexpr int kProgramTrack = 0;
constexpr int kFirstTrackOfSpans = 1 << 20;  ///< beyond those of communicators

/// What an event is, for viewers to choose by.
constexpr std::string_view kCall = "call";
constexpr std::string_view kPartOfCall = "part of call";
constexpr std::string_view kBetweenCalls = "between calls";
constexpr std::string_view kProgramsSpan = "span";

std::string quoted_json(std::string_view text) {
  std::string quoted;
  append_quoted(quoted, text, BadUtf8::kReplace);
  return quoted;
}

double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

std::string name_event(std::string_view what, int worker, int track, std::string_view name) {
  return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", what, worker,
                     track, quoted_json(name));
}

}  // namespace

/// An event that has a beginning and an end.
struct Timeline::Span {
  std::string name;
  std::string_view category;
  int worker;
  int track;
  std::int64_t begin;
  std::int64_t end;
  std::string arguments = "{}";
};

Timeline::Timeline(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "we")) {
  if (file_ == nullptr)
    throw Unavailable("the timeline {} cannot be written: {}", path, std::strerror(errno));
}

void Timeline::add_worker(const WorkerInfo& worker) {
  workers_.push_back(worker.rank);
  write(name_event("process_name", worker.rank, 0,
                   fmt::format("worker {} (host {})", worker.rank, worker.host)));
  write(name_event("thread_name", worker.rank, kProgramTrack, "program"));
}

int Timeline::track_of(std::string_view communicator, const ObservedCall& call) {
  const bool is_urgent =
      PriorityField::unpack(call.call.what) == static_cast<std::uint64_t>(Priority::kUrgent);
  const std::string name = fmt::format("communicator {}{}", communicator, is_urgent ? ", urgent" : "");
  const int track = tracks_.try_emplace(name, static_cast<int>(tracks_.size()) + 1).first->second;
  name_track(call.worker, track, name);
  return track;
}

/// The first time only.
void Timeline::name_track(int worker, int track, std::string_view name) {
  if (ends_.try_emplace({worker, track}, 0).second) write(name_event("thread_name", worker, track, name));
}

void Timeline::add(const WorkerSpan& of_worker) {
  const auto& [worker, span] = of_worker;
  const int track = kFirstTrackOfSpans + span.thread;
  name_track(worker, track, span.thread == 0 ? "spans" : fmt::format("spans, thread {}", span.thread));
  write(Span{span.name, kProgramsSpan, worker, track, span.begin, span.end});
}

void Timeline::add(std::string_view communicator, const ObservedCall& call) {
  const std::optional<RecordedCall> recorded = unpack(call.call);
  if (!recorded) return;
  const int track = track_of(communicator, call);
  // Calls of a track go on one after the other; one that was started earlier waits in a queue.
  std::int64_t& busy_until = ends_[{call.worker, track}];
  const std::int64_t begin = std::min(std::max(call.arrival, busy_until), call.end);
  const std::int64_t node_here = std::clamp(call.node_here, begin, call.end);
  const std::int64_t all_here = std::clamp(call.all_here, node_here, call.end);
  busy_until = call.end;
  write(Span{std::string(to_string(recorded->kind)), kCall, call.worker, track, begin, call.end,
             fmt::format(R"({{"call":{},"last":"worker {}","queued_us":{:.3f}}})",
                         quoted_json(to_string(*recorded)), call.last, microseconds(begin - call.arrival))});
  if (call.last != call.worker && node_here > begin)
    write(Span{fmt::format("wait for worker {}", call.last), kPartOfCall, call.worker, track, begin,
               node_here});
  if (all_here > node_here)
    write(Span{"wait for other nodes", kPartOfCall, call.worker, track, node_here, all_here});
  if (all_here < call.end) write(Span{"move data", kPartOfCall, call.worker, track, all_here, call.end});
  if (!call.away.is_known()) return;
  std::int64_t& program_until = ends_[{call.worker, kProgramTrack}];
  const std::int64_t left = std::max(call.arrival - call.away.all, program_until);
  program_until = call.arrival;
  const std::int64_t read = std::min(left + call.away.input, call.arrival);
  if (read > left) write(Span{"input", kBetweenCalls, call.worker, kProgramTrack, left, read});
  if (call.arrival > read)
    write(Span{"compute", kBetweenCalls, call.worker, kProgramTrack, read, call.arrival});
}

void Timeline::write(const Span& span) {
  write(
      fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{},"args":{}}})",
                  quoted_json(span.name), span.category, microseconds(span.begin),
                  microseconds(span.end - span.begin), span.worker, span.track, span.arguments));
}

void Timeline::write(std::string_view event) {
  if (file_ == nullptr) return;
  fmt::print(file_.get(), "{}{}", is_empty_ ? "[\n" : ",\n", event);
  is_empty_ = false;
}

void Timeline::note_clock_error(std::int64_t error) noexcept {
  if (error < 0 || clock_error_ < 0)
    clock_error_ = -1;
  else
    clock_error_ = std::max(clock_error_, error);
}

/// As a label that viewers show beside the name of each worker.
void Timeline::write_clock_error() {
  if (clock_error_ == 0) return;
  const std::string error = clock_error_ < 0 ? "null" : fmt::format("{:.3f}", microseconds(clock_error_));
  const std::string label =
      clock_error_ < 0 ? "clock not aligned" : fmt::format("clock right to {} us", error);
  for (const int worker : workers_)
    write(fmt::format(
        R"({{"name":"process_labels","ph":"M","pid":{},"tid":0,"args":{{"labels":"{}","clock_error_us":{}}}}})",
        worker, label, error));
}

void Timeline::finish() noexcept {
  if (file_ == nullptr) return;
  write_clock_error();
  std::fputs(is_empty_ ? "[]\n" : "\n]\n", file_.get());
  const bool failed = std::ferror(file_.get()) != 0;
  if (std::fclose(file_.release()) != 0 || failed)
    logging::warning("the timeline {} is not complete: {}", path_, std::strerror(errno));
}

void merge_timelines(std::span<const std::string> parts, const std::string& path) {
  std::ofstream merged(path);
  bool is_empty = true;
  for (const std::string& part : parts) {
    std::ifstream file(part);
    if (!file) throw Unavailable("there is no timeline {}", part);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      if (line.ends_with(',')) line.pop_back();
      if (line == "[" || line == "]" || line == "[]" || line.empty()) continue;
      if (!nlohmann::json::accept(line)) throw InvalidArgument("{}:{}: no event of a timeline", part, number);
      merged << (is_empty ? "[\n" : ",\n") << line;
      is_empty = false;
    }
  }
  merged << (is_empty ? "[]\n" : "\n]\n");
  merged.close();
  if (!merged) throw Unavailable("the timeline {} cannot be written", path);
}

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
