#include "timeline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "base/files.h"
#include "cluster/sockets.h"

namespace cohort::info {
namespace {

using Json = nlohmann::ordered_json;

/// More workers than these have no lines of their own.
constexpr std::size_t kMostRows = 64;

constexpr std::string_view kWaitForWorkerN = "wait for worker ";

/// What a worker spends its time with; the parts of a call, not the call itself.
enum class Part { kCompute, kInput, kWaitForWorker, kWaitForNodes, kMoveData };
constexpr std::array kParts{std::pair{Part::kCompute, "compute"}, std::pair{Part::kInput, "input"},
                            std::pair{Part::kWaitForWorker, "wait for worker"},
                            std::pair{Part::kWaitForNodes, "wait for other nodes"},
                            std::pair{Part::kMoveData, "move data"}};

std::optional<Part> part_of(std::string_view name) {
  if (name.starts_with(kWaitForWorkerN)) return Part::kWaitForWorker;
  const auto found = std::ranges::find(kParts, name, &std::pair<Part, const char*>::second);
  return found == kParts.end() ? std::nullopt : std::optional(found->first);
}

/// A number of a worker or a track.
int number_of(const Json& value) {
  const auto number = value.get<std::int64_t>();
  if (!value.is_number_integer() || number < 0 || number > std::numeric_limits<int>::max())
    throw InvalidArgument("{} numbers no worker and no track", value.dump());
  return static_cast<int>(number);
}

/// In microseconds.
double time_of(const Json& value) {
  constexpr double kCentury = 3.2e15;
  const double time = value.get<double>();
  if (!(time >= 0 && time <= kCentury)) throw InvalidArgument("{} is no time in microseconds", value.dump());
  return time;
}

class Reader {
 public:
  explicit Reader(std::string file) { facts_.file = std::move(file); }

  void take(std::string_view line) {
    if (line.ends_with(',')) line.remove_suffix(1);
    if (line.empty() || line == "[" || line == "]") return;
    const Json event = Json::parse(line);
    const std::string& kind = event.at("ph").get_ref<const std::string&>();
    const int worker = number_of(event.at("pid"));
    const int track = number_of(event.at("tid"));
    const std::string& name = event.at("name").get_ref<const std::string&>();
    if (kind == "X") {
      const bool is_programs = event.value("cat", "") == "span";
      facts_.spans.push_back(
          {worker, track, is_programs, index_of(name), time_of(event.at("ts")), time_of(event.at("dur"))});
    } else if (name == "process_name") {
      facts_.workers[worker] = event.at("args").at("name");
    } else if (name == "thread_name") {
      facts_.tracks[{worker, track}] = event.at("args").at("name");
    } else if (name == "process_labels") {
      const Json& error = event.at("args").at("clock_error_us");
      if (error.is_null())
        facts_.clocks_are_aligned = false;
      else
        facts_.clock_error = std::max(facts_.clock_error, error.get<double>());
    }
  }

  [[nodiscard]] TimelineFacts finish() {
    std::ranges::sort(facts_.spans, {},
                      [](const DrawnSpan& span) { return std::tuple(span.begin, -span.duration); });
    if (!facts_.spans.empty()) {
      facts_.begin = facts_.spans.front().begin;
      const auto end_of = [](const DrawnSpan& span) { return span.begin + span.duration; };
      facts_.end = end_of(std::ranges::max(facts_.spans, {}, end_of));
    }
    return std::move(facts_);
  }

 private:
  int index_of(const std::string& name) {
    const auto [place, is_new] = names_.try_emplace(name, static_cast<int>(facts_.names.size()));
    if (is_new) facts_.names.push_back(name);
    return place->second;
  }

  TimelineFacts facts_;
  std::map<std::string, int> names_;
};

/// Of calls of a kind, or spans of a name.
struct Times {
  std::uint64_t count = 0;
  double sum = 0;
  double longest = 0;
  int worker = 0;  ///< that had the longest
  double at = 0;   ///< when it began
};

/// In microseconds.
struct Summary {
  std::map<int, std::map<Part, double>> parts;
  std::map<std::string, Times> calls;
  std::map<std::string, Times> spans;  ///< of the program
};

Summary summarise(const TimelineFacts& facts) {
  Summary summary;
  for (const auto& [worker, name] : facts.workers) summary.parts[worker];
  for (const DrawnSpan& span : facts.spans) {
    const std::string& name = facts.names[static_cast<std::size_t>(span.name)];
    if (const std::optional<Part> part = part_of(name); part && !span.is_programs) {
      summary.parts[span.worker][*part] += span.duration;
      continue;
    }
    Times& times = (span.is_programs ? summary.spans : summary.calls)[name];
    ++times.count;
    times.sum += span.duration;
    if (times.count > 1 && span.duration <= times.longest) continue;
    times.longest = span.duration;
    times.worker = span.worker;
    times.at = span.begin - facts.begin;
  }
  return summary;
}

std::string table_of(std::string_view what, std::string_view count,
                     const std::map<std::string, Times>& by_name) {
  std::size_t width = 16;
  for (const auto& [name, times] : by_name) width = std::max(width, name.size());
  std::string text = fmt::format("{:<{}} {:>8} {:>12} {:>12}\n", what, width, count, "mean", "longest");
  for (const auto& [name, times] : by_name) {
    text += fmt::format("{:<{}} {:>8} {:>9.3f} ms {:>9.3f} ms, of worker {} after {:.3f} s\n", name, width,
                        times.count, times.sum / static_cast<double>(times.count) / 1e3, times.longest / 1e3,
                        times.worker, times.at / 1e6);
  }
  return text;
}

Json json_of(std::string_view count, const std::map<std::string, Times>& by_name) {
  Json all = Json::object();
  for (const auto& [name, times] : by_name)
    all[name] = {{count, times.count},
                 {"mean_seconds", times.sum / static_cast<double>(times.count) / 1e6},
                 {"longest_seconds", times.longest / 1e6},
                 {"longest_of_worker", times.worker},
                 {"longest_after_seconds", times.at / 1e6}};
  return all;
}

}  // namespace

TimelineFacts read_timeline(const std::string& file) {
  try {
    // Refuses what would never end, such as a pipe.
    const watch::Fd descriptor(open_regular_file(file, "timeline"));
  } catch (const Error& error) {
    throw InvalidArgument("--timeline: {}", error.what());
  }
  std::ifstream stream(file);
  Reader reader(file);
  std::size_t number = 0;
  std::string line;
  while (std::getline(stream, line)) {
    ++number;
    if (number == 1 && line != "[") throw InvalidArgument("--timeline {}: is no timeline of Cohort's", file);
    try {
      reader.take(line);
    } catch (const std::exception& error) {
      if (stream.eof()) break;  // the job has not finished this line
      throw InvalidArgument("--timeline {}, line {}: is no event of a timeline: {}", file, number,
                            error.what());
    }
  }
  if (stream.bad()) throw Unavailable("{} cannot be read", file);
  TimelineFacts facts = reader.finish();
  if (facts.spans.empty()) throw InvalidArgument("--timeline {}: has no calls", file);
  return facts;
}

std::string to_text(const TimelineFacts& facts) {
  const Summary summary = summarise(facts);
  const double length = std::max(facts.end - facts.begin, 1e-3);
  std::string text = fmt::format("{}: {} worker{}, {:.3g} s", facts.file, facts.workers.size(),
                                 facts.workers.size() == 1 ? "" : "s", length / 1e6);
  if (!facts.clocks_are_aligned)
    text += "; the clocks of different hosts are not aligned";
  else if (facts.clock_error > 0)
    text += fmt::format("; times of different hosts are right to {:.0f} us", std::ceil(facts.clock_error));
  text += '\n';
  std::size_t width = 6;
  for (const auto& [worker, name] : facts.workers) width = std::max(width, name.size());
  text += fmt::format("{:<{}}", "worker", width);
  for (const auto& [part, name] : kParts) text += fmt::format("  {:>8}", name);
  text += '\n';
  std::size_t rows = 0;
  for (const auto& [worker, parts] : summary.parts) {
    if (++rows > kMostRows) continue;
    const auto name = facts.workers.find(worker);
    text += fmt::format("{:<{}}",
                        name == facts.workers.end() ? fmt::format("worker {}", worker) : name->second, width);
    for (const auto& [part, title] : kParts) {
      const auto found = parts.find(part);
      const double share = found == parts.end() ? 0 : 100 * found->second / length;
      text += fmt::format("  {:>{}}", fmt::format("{:.1f} %", share),
                          std::max<std::size_t>(std::string_view(title).size(), 8));
    }
    text += '\n';
  }
  if (rows > kMostRows) text += fmt::format("and {} more workers\n", rows - kMostRows);
  text += table_of("call", "calls", summary.calls);
  if (!summary.spans.empty()) text += table_of("span", "spans", summary.spans);
  return text;
}

std::string to_json(const TimelineFacts& facts) {
  const Summary summary = summarise(facts);
  Json workers = Json::array();
  for (const auto& [worker, parts] : summary.parts) {
    Json seconds = Json::object();
    for (const auto& [part, name] : kParts) {
      const auto found = parts.find(part);
      seconds[name] = found == parts.end() ? 0.0 : found->second / 1e6;
    }
    workers.push_back({{"worker", worker}, {"seconds", std::move(seconds)}});
  }
  return Json{
      {"file", facts.file},
      {"seconds", (facts.end - facts.begin) / 1e6},
      {"clock_error_seconds", facts.clocks_are_aligned ? Json(facts.clock_error / 1e6) : Json(nullptr)},
      {"workers", std::move(workers)},
      {"calls", json_of("calls", summary.calls)},
      {"spans", json_of("spans", summary.spans)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cohort::info
