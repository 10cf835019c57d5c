#include "prometheus_text.h"

#include <cmath>
#include <functional>
#include <string_view>

#include <fmt/format.h>

namespace cohort {
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
