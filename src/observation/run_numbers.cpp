#include "run_numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "cluster/peer_watch.h"

namespace cohort {
namespace {

/// At the beginning of a note; no other begins like that, for others begin with a time, which is positive.
constexpr std::int64_t kNumbersMark = std::numeric_limits<std::int64_t>::min() + 1;

/// A note has all kinds and some of the workers: these follow it.
struct NumbersNoteHead {
  std::int64_t mark = kNumbersMark;
  std::int32_t reader = 0;
  std::int32_t workers = 0;
  double calls = 0;
  double seen = 0;
  std::array<KindNumbers, kCollectiveKinds> kinds{};
};
struct NoteWorker {
  std::int64_t worker = 0;
  WorkerNumbers numbers = {};
};
constexpr std::size_t kWorkersInNote =
    (PeerWatch::kLongestNote - sizeof(NumbersNoteHead)) / sizeof(NoteWorker);

void put(std::string& note, const void* data, std::size_t bytes) {
  note.append(static_cast<const char*>(data), bytes);
}

}  // namespace

double WorkerNumbers::compute() const noexcept { return std::max(elapsed - communication - input, 0.0); }

void RunNumbers::add(const RunNumbers& other) {
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    kinds[kind].calls += other.kinds[kind].calls;
    kinds[kind].bytes += other.kinds[kind].bytes;
    kinds[kind].seconds += other.kinds[kind].seconds;
  }
  calls += other.calls;
  seen += other.seen;
  for (const auto& [rank, numbers] : other.workers) {
    WorkerNumbers& worker = workers[rank];
    worker.elapsed = std::max(worker.elapsed, numbers.elapsed);
    worker.communication += numbers.communication;
    worker.input = std::max(worker.input, numbers.input);  // each reader sees that of the whole process
  }
}

Spread spread_of(const std::map<int, double>& by_worker) {
  Spread spread;
  for (const auto& [worker, value] : by_worker) {
    if (spread.of_least < 0 || value < spread.least) {
      spread.least = value;
      spread.of_least = worker;
    }
    if (spread.of_most < 0 || value > spread.most) {
      spread.most = value;
      spread.of_most = worker;
    }
    spread.mean += value / static_cast<double>(by_worker.size());
  }
  return spread;
}

std::vector<std::string> to_notes(const RunNumbers& numbers, int reader) {
  std::vector<NoteWorker> workers;
  for (const auto& [rank, of_worker] : numbers.workers) workers.push_back({rank, of_worker});
  std::vector<std::string> notes;
  std::size_t told = 0;
  do {
    const std::size_t some = std::min(workers.size() - told, kWorkersInNote);
    const NumbersNoteHead head{.reader = reader,
                               .workers = static_cast<std::int32_t>(some),
                               .calls = numbers.calls,
                               .seen = numbers.seen,
                               .kinds = numbers.kinds};
    std::string& note = notes.emplace_back();
    put(note, &head, sizeof head);
    if (some > 0) put(note, &workers[told], some * sizeof(NoteWorker));
    told += some;
  } while (told < workers.size());
  return notes;
}

bool hear(std::string_view note, std::map<int, RunNumbers>& by_reader) {
  NumbersNoteHead head;
  if (note.size() < sizeof head) return false;
  std::memcpy(&head, note.data(), sizeof head);
  note.remove_prefix(sizeof head);
  if (head.mark != kNumbersMark || head.workers < 0) return false;
  if (note.size() != static_cast<std::size_t>(head.workers) * sizeof(NoteWorker)) return false;
  RunNumbers& numbers = by_reader[head.reader];
  numbers.calls = head.calls;
  numbers.seen = head.seen;
  numbers.kinds = head.kinds;
  while (!note.empty()) {
    NoteWorker worker;
    std::memcpy(&worker, note.data(), sizeof worker);
    note.remove_prefix(sizeof worker);
    numbers.workers[static_cast<int>(worker.worker)] = worker.numbers;
  }
  return true;
}

// The table.

namespace {

/// More workers than that have no lines of their own.
constexpr std::size_t kWorkersWithLines = 8;

std::string seconds_text(double seconds) {
  if (seconds >= 100) return fmt::format("{:.0f} s", seconds);
  if (seconds >= 0.1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-4) return fmt::format("{:.3g} ms", seconds * 1e3);
  return seconds > 0 ? fmt::format("{:.3g} us", seconds * 1e6) : "0";
}

/// Whole numbers as such, also those that sums of estimates miss by a rounding.
std::string calls_text(double calls) {
  std::string text = fmt::format("{:.1f}", calls);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

/// Of a worker's time.
struct Shares {
  double compute = 0;
  double communication = 0;
  double input = 0;
};

/// Estimates, and waits of several threads at once, must not make more of a worker's time than there was.
Shares shares_of(const WorkerNumbers& worker) {
  const double all = std::max({worker.elapsed, worker.communication + worker.input, 1e-9});
  return {worker.compute() / all, worker.communication / all, worker.input / all};
}

std::string shares_line(std::string_view name, const Shares& shares) {
  return fmt::format("  {:<28} {:>7.1f} % {:>13.1f} % {:>11.1f} %\n", name, 100 * shares.compute,
                     100 * shares.communication, 100 * shares.input);
}

std::string lines_of_workers(const RunNumbers& numbers, std::span<const WorkerInfo> workers) {
  std::string lines =
      fmt::format("  {:<28} {:>9} {:>15} {:>13}\n", "worker", "compute", "communication", "input wait");
  std::map<int, double> compute;
  std::map<int, double> communication;
  std::map<int, double> input;
  for (const auto& [rank, worker] : numbers.workers) {
    const Shares shares = shares_of(worker);
    compute[rank] = shares.compute;
    communication[rank] = shares.communication;
    input[rank] = shares.input;
    if (numbers.workers.size() > kWorkersWithLines) continue;
    const auto index = static_cast<std::size_t>(rank);
    const std::string host = index < workers.size() ? fmt::format(" (host {})", workers[index].host) : "";
    lines += shares_line(fmt::format("{}{}", rank, host), shares);
  }
  if (numbers.workers.size() <= kWorkersWithLines) return lines;
  const std::array spreads{spread_of(compute), spread_of(communication), spread_of(input)};
  const auto line = [&](std::string_view name, double Spread::*value) {
    return shares_line(name, {spreads[0].*value, spreads[1].*value, spreads[2].*value});
  };
  lines += line("least", &Spread::least) + line("mean", &Spread::mean) + line("most", &Spread::most);
  return lines + fmt::format("  {:<28} {:>9} {:>15} {:>13}\n", "the most has worker", spreads[0].of_most,
                             spreads[1].of_most, spreads[2].of_most);
}

/// Of a worker on average, whatever number of members it has.
std::string lines_of_kinds(const RunNumbers& numbers, double workers) {
  std::string lines = fmt::format("  {:<28} {:>9} {:>15} {:>13} {:>13}\n", "kind, of a worker on average",
                                  "calls", "bytes", "time in calls", "mean call");
  for (std::size_t i = 0; i < numbers.kinds.size(); ++i) {
    const KindNumbers& kind = numbers.kinds[i];
    if (kind.calls == 0) continue;
    const bool has_times = !is_message(static_cast<CollectiveKind>(i));
    const double calls = kind.calls / workers;
    lines += fmt::format("  {:<28} {:>9} {:>15} {:>13} {:>13}\n", to_string(static_cast<CollectiveKind>(i)),
                         calls_text(calls), bytes_text(kind.bytes / workers),
                         has_times ? seconds_text(kind.seconds / workers) : "-",
                         has_times ? seconds_text(kind.seconds / kind.calls) : "-");
  }
  return lines;
}

std::string lines_of_choices(std::span<const LoggedChoice> choices) {
  std::string lines = fmt::format("  {:<42} {:>9} {:>22}   {}\n", "algorithm, on the chief", "calls",
                                  "bytes of a call", "chosen by");
  for (const LoggedChoice& choice : choices) {
    const std::string least = bytes_text(static_cast<double>(choice.least_bytes));
    const std::string most = bytes_text(static_cast<double>(choice.most_bytes));
    lines += fmt::format(
        "  {:<42} {:>9} {:>22}   {}\n", fmt::format("{}: {}", to_string(choice.kind), choice.algorithm),
        choice.calls, least == most ? least : fmt::format("{} to {}", least, most), to_string(choice.reason));
  }
  return lines;
}

}  // namespace

std::string table_of(const RunNumbers& numbers, std::span<const WorkerInfo> workers, double seconds,
                     std::span<const LoggedChoice> choices) {
  const auto count = [](std::size_t number, std::string_view what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  const auto nodes = static_cast<std::size_t>(std::ranges::max(workers, {}, &WorkerInfo::node).node + 1);
  std::string text = fmt::format("cohort numbers: {} on {}, {}\n", count(workers.size(), "worker"),
                                 count(nodes, "node"), seconds_text(seconds));
  if (numbers.workers.empty()) return text + "  no communicator was made\n";
  if (numbers.workers.size() < workers.size())
    text += fmt::format(
        "  of {} of the workers nothing is known: they were in no communicator, or could not tell\n",
        workers.size() - numbers.workers.size());
  text += lines_of_workers(numbers, workers);
  text += lines_of_kinds(numbers, static_cast<double>(workers.size()));
  if (numbers.seen < numbers.calls)
    text += fmt::format("  calls are exact; bytes and times are estimated from {:.3g} % of the calls\n",
                        100 * numbers.seen / numbers.calls);
  if (!choices.empty()) text += lines_of_choices(choices);
  return text;
}

// The text of Prometheus.

namespace {

void begin(std::string& text, std::string_view name, std::string_view type, std::string_view help) {
  text += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

void gauge(std::string& text, std::string_view name, std::string_view help, const std::string& value) {
  begin(text, name, "gauge", help);
  text += fmt::format("{} {}\n", name, value);
}

/// With microseconds, so that a sum over years still has all its digits.
std::string to_microseconds(double seconds) { return fmt::format("{:.6f}", seconds); }
/// Estimates grow by fractions, of which there are none in what is counted.
std::string whole(double count) { return fmt::format("{:.0f}", std::floor(count + 1e-6)); }

void by_kind(std::string& text, const RunNumbers& numbers, std::string_view name,
             const std::function<std::string(const KindNumbers&)>& value, bool has_messages) {
  for (std::size_t i = 0; i < numbers.kinds.size(); ++i) {
    const auto kind = static_cast<CollectiveKind>(i);
    if (is_message(kind) && !has_messages) continue;
    text += fmt::format("{}{{kind=\"{}\"}} {}\n", name, to_string(kind), value(numbers.kinds[i]));
  }
}

/// Over all workers, so that there are as many series for a thousand of them. One that nothing is known of
/// has 0, so that no series ever goes back.
void over_workers(std::string& text, const RunNumbers& numbers, std::span<const WorkerInfo> workers,
                  std::string_view name, double WorkerNumbers::*value) {
  std::map<int, double> values;
  for (const WorkerInfo& worker : workers) values[worker.rank] = 0;
  for (const auto& [rank, worker] : numbers.workers) values[rank] = worker.*value;
  const Spread spread = spread_of(values);
  text += fmt::format("{0}{{over_workers=\"min\"}} {1}\n{0}{{over_workers=\"mean\"}} {2}\n", name,
                      to_microseconds(spread.least), to_microseconds(spread.mean));
  text += fmt::format("{}{{over_workers=\"max\"}} {}\n", name, to_microseconds(spread.most));
}

}  // namespace

std::string prometheus_text(const RunNumbers& numbers, std::span<const WorkerInfo> workers, double seconds) {
  std::string text;
  gauge(text, "cohort_workers", "Workers of the job.", fmt::format("{}", workers.size()));
  gauge(text, "cohort_run_seconds", "Time since the session began.", to_microseconds(seconds));
  begin(text, "cohort_collective_calls_total", "counter",
        "Collectives and messages that all workers have made, added up.");
  by_kind(
      text, numbers, "cohort_collective_calls_total",
      [](const KindNumbers& kind) { return whole(kind.calls); }, true);
  begin(text, "cohort_collective_bytes_total", "counter",
        "Bytes of these calls: elements times their size, of one block where a call has a block per member.");
  by_kind(
      text, numbers, "cohort_collective_bytes_total",
      [](const KindNumbers& kind) { return whole(kind.bytes); }, true);
  begin(text, "cohort_collective_seconds_total", "counter",
        "Time between a worker coming to a collective and its end, of all workers, added up.");
  by_kind(
      text, numbers, "cohort_collective_seconds_total",
      [](const KindNumbers& kind) { return to_microseconds(kind.seconds); }, false);
  begin(text, "cohort_worker_communication_seconds_total", "counter",
        "Time of a worker in blocking collectives and in waits for asynchronous ones.");
  over_workers(text, numbers, workers, "cohort_worker_communication_seconds_total",
               &WorkerNumbers::communication);
  begin(text, "cohort_worker_input_wait_seconds_total", "counter", "Time of a worker waiting for input.");
  over_workers(text, numbers, workers, "cohort_worker_input_wait_seconds_total", &WorkerNumbers::input);
  gauge(
      text, "cohort_calls_seen_ratio",
      "Share of the collectives from which bytes and times are known; the others are taken to be like them.",
      fmt::format("{:.6f}", numbers.calls > 0 ? numbers.seen / numbers.calls : 1.0));
  return text;
}

}  // namespace cohort
