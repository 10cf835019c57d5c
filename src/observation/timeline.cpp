#include "timeline.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "collective/record/packed_call.h"
#include "collective/record/record_reader.h"

namespace cohort {
namespace {

constexpr int kProgramTrack = 0;
constexpr int kFirstTrackOfSpans = 1 << 20;  ///< beyond those of communicators

/// What an event is, for viewers to choose by.
constexpr std::string_view kCall = "call";
constexpr std::string_view kPartOfCall = "part of call";
constexpr std::string_view kBetweenCalls = "between calls";
constexpr std::string_view kProgramsSpan = "span";

std::string quoted_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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

}  // namespace cohort
