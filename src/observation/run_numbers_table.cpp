#include "run_numbers_table.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/bytes_text.h"

namespace cohort {
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

}  // namespace cohort
