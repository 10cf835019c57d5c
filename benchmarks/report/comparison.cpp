#include "report/comparison.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "base/json.h"
#include "errors.h"
#include "option_values.h"
#include "report/page.h"

namespace cohort::bench {
namespace {

constexpr const char* kHowToMake =
    "measure one by cohort-bench COLLECTIVE --rounds 25 --loops 1 --format json --output FILE, or --report "
    "FILE";

/// What the fields of a row say of the calls, and not how long they took.
constexpr const char* kSameCalls[] = {"collective", "dtype",    "op",     "members",
                                      "bytes",      "in_place", "inputs", "buffers"};

bool are_same_calls(const Json& one, const Json& other) {
  return std::ranges::all_of(kSameCalls, [&](const char* field) {
    return one.contains(field) && other.contains(field) && one.at(field) == other.at(field);
  });
}

bool is_ours(const Json& row) { return row.at("library") == "cohort"; }

/// Of each round. Reports of older programs have the median alone.
std::vector<double> rounds_of(const Json& row) {
  std::vector<double> times;
  if (row.contains("rounds_us")) times = row.at("rounds_us").get<std::vector<double>>();
  if (times.empty()) times.push_back(row.at("median_us").get<double>());
  for (const double time : times)
    if (!(time > 0 && std::isfinite(time)))
      throw UsageError("--baseline: {} is no time; {}", time, kHowToMake);
  return times;
}

/// Null where the run has measured no peer at these calls.
const Json* peer_beside(const Json& row, const Json& results) {
  for (const Json& other : results) {
    if (!is_ours(other) && other.at("bytes") == row.at("bytes") && other.at("dtype") == row.at("dtype"))
      return &other;
  }
  return nullptr;
}

/// Ours over the peer's, round by round; empty where there is no peer.
std::vector<double> beside_peer(const Json& row, const Json* peer) {
  if (peer == nullptr) return {};
  std::vector<double> times = rounds_of(row);
  const std::vector<double> others = rounds_of(*peer);
  if (others.size() != times.size()) return {};
  for (std::size_t i = 0; i < times.size(); ++i) times[i] /= others[i];
  return times;
}

/// The probability that a speed which is `bound` of the baseline's looks as slow as `now` does.
double chance_of(std::vector<double> before, const std::vector<double>& now, double bound) {
  for (double& time : before) time /= bound;
  return chance_of_larger(before, now);
}

std::string text_of(const Json& environment, const char* field) {
  const auto found = environment.find(field);
  return found == environment.end() ? "?" : found->is_string() ? found->get<std::string>() : found->dump();
}

/// What must be the same for times to be comparable at all.
constexpr const char* kMachine[] = {"cpu_model", "cores_available", "nodes", "gpu"};
constexpr const char* kSurroundings[] = {"build", "hosts", "kernel", "mpi_library", "binding"};

void add_differences(const Json& before, const Json& now, std::span<const char* const> fields,
                     std::vector<std::string>& differences) {
  for (const char* field : fields) {
    const std::string old = text_of(before, field);
    const std::string recent = text_of(now, field);
    if (old != recent) differences.push_back(fmt::format("{}: {} instead of {}", field, recent, old));
  }
}

void require_results(const Json& report) {
  const bool has_results = report.is_object() && report.contains("environment") &&
                           report.contains("results") && report.at("results").is_array() &&
                           report.at("environment").is_object();
  if (!has_results) throw UsageError("--baseline: there are no results of a sweep in it; {}", kHowToMake);
}

std::size_t rounds_of_baseline(const Json& baseline) {
  std::size_t rounds = 0;
  for (const Json& row : baseline.at("results"))
    if (is_ours(row)) rounds = std::max(rounds, rounds_of(row).size());
  return rounds;
}

ComparedRow compare_row(const Json& old, const Json& recent, const Json& baseline, const Json& now,
                        std::optional<double> fail_below) {
  const std::vector<double> before = rounds_of(old);
  const std::vector<double> times = rounds_of(recent);
  ComparedRow row{.what = recent.at("collective").get<std::string>(),
                  .bytes = recent.at("bytes").get<std::size_t>(),
                  .baseline_us = old.at("median_us").get<double>(),
                  .now_us = recent.at("median_us").get<double>(),
                  .speed = quotient(before, times)};
  if (!fail_below) return row;
  row.chance = chance_of(before, times, *fail_below);
  const bool same_library =
      text_of(baseline.at("environment"), "mpi_library") == text_of(now.at("environment"), "mpi_library");
  if (!same_library) return row;
  const Json* const peer = peer_beside(recent, now.at("results"));
  const Json* const old_peer = peer_beside(old, baseline.at("results"));
  if (peer == nullptr || old_peer == nullptr) return row;
  const std::vector<double> before_beside = beside_peer(old, old_peer);
  const std::vector<double> now_beside = beside_peer(recent, peer);
  if (before_beside.empty() || now_beside.empty()) return row;
  row.beside_peer = true;
  row.chance = std::max(*row.chance, chance_of(before_beside, now_beside, *fail_below));
  return row;
}

/// Null where the baseline has no such row.
const Json* find_row(const Json& baseline, const Json& recent) {
  for (const Json& old : baseline.at("results"))
    if (is_ours(old) && are_same_calls(old, recent)) return &old;
  return nullptr;
}

std::string describe(const Json& environment) {
  return fmt::format("Cohort {} ({}) of {}", text_of(environment, "version"), text_of(environment, "build"),
                     text_of(environment, "date"));
}

/// The comparison of a row with the baseline that counts; nothing where none has such a row.
std::optional<ComparedRow> compare_with_all(const Json& recent, std::span<const Json> baselines,
                                            const Json& now, std::optional<double> fail_below) {
  std::optional<ComparedRow> counts;
  for (const Json& baseline : baselines) {
    const Json* const old = find_row(baseline, recent);
    if (old == nullptr) continue;
    const ComparedRow row = compare_row(*old, recent, baseline, now, fail_below);
    const auto slowness = [](const ComparedRow& each) { return each.chance.value_or(each.speed.estimate); };
    if (!counts || slowness(row) > slowness(*counts)) counts = row;
  }
  return counts;
}

Comparison compare_checked(std::span<const Json> baselines, const Json& now,
                           std::optional<double> fail_below) {
  const Json& environment = now.at("environment");
  Comparison comparison{.baseline = describe(baselines.back().at("environment")), .fail_below = fail_below};
  if (baselines.size() > 1)
    comparison.baseline = fmt::format("{} runs, the last by {}", baselines.size(), comparison.baseline);
  for (const Json& baseline : baselines)
    add_differences(baseline.at("environment"), environment, kMachine, comparison.differences);
  if (fail_below && !comparison.differences.empty())
    throw UsageError("--fail-below: the baseline is of another machine ({}); measure it again here",
                     comparison.differences.front());
  for (const Json& baseline : baselines)
    add_differences(baseline.at("environment"), environment, kSurroundings, comparison.differences);
  std::size_t rounds = 0;
  for (const Json& recent : now.at("results")) {
    if (!is_ours(recent)) continue;
    rounds = std::max(rounds, rounds_of(recent).size());
    if (auto row = compare_with_all(recent, baselines, now, fail_below)) comparison.rows.push_back(*row);
  }
  if (comparison.rows.empty())
    throw UsageError(
        "--baseline: it has none of these calls; collective, sizes, type, members and memory must be the "
        "same");
  if (!fail_below) return comparison;
  for (const Json& baseline : baselines) require_enough_rounds(baseline, comparison.rows.size(), rounds);
  std::vector<double> chances;
  for (const ComparedRow& row : comparison.rows) chances.push_back(*row.chance);
  chances = corrected(chances);
  for (std::size_t i = 0; i < chances.size(); ++i) {
    comparison.rows[i].chance = chances[i];
    comparison.rows[i].slower = chances[i] <= kMostFalseAlarms;
  }
  return comparison;
}

}  // namespace

bool Comparison::is_slower() const { return std::ranges::any_of(rows, &ComparedRow::slower); }

std::string Comparison::verdict() const {
  if (!fail_below) return "not tested: --fail-below says from what on a size is too slow";
  const auto slower = std::ranges::count_if(rows, &ComparedRow::slower);
  const std::string sizes = fmt::format("{} size{}", rows.size(), rows.size() == 1 ? "" : "s");
  if (slower == 0)
    return fmt::format("passed: none of {} is shown to have less than {} of the baseline's speed", sizes,
                       *fail_below);
  return fmt::format("failed: {} of {} {} less than {} of the baseline's speed", slower, sizes,
                     slower == 1 ? "has" : "have", *fail_below);
}

Json read_results(const std::string& option, const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError("{} {}: cannot be read ({})", option, path, std::strerror(errno));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.starts_with("<!")) text = results_in_page(text);
  try {
    return parse_json<Json>(text, fmt::format("{} {}", option, path),
                            "a JSON report or a page; " + std::string(kHowToMake));
  } catch (const InvalidArgument& error) {
    throw UsageError("{}", error.what());
  }
}

void require_enough_rounds(const Json& baseline, std::size_t sizes, std::size_t rounds) {
  require_results(baseline);
  const std::size_t before = rounds_of_baseline(baseline);
  if (static_cast<double>(sizes) * least_chance(before, rounds) <= kMostFalseAlarms) return;
  throw UsageError(
      "--fail-below: {} round{} of the baseline and {} now are too few to show anything of {} size{}; "
      "measure both "
      "with --rounds {}",
      before, before == 1 ? "" : "s", rounds, sizes, sizes == 1 ? "" : "s", kTestedRounds);
}

Comparison compare(std::span<const Json> baselines, const Json& now, std::optional<double> fail_below) {
  for (const Json& baseline : baselines) require_results(baseline);
  require_results(now);
  try {
    return compare_checked(baselines, now, fail_below);
  } catch (const Json::exception& error) {
    throw UsageError("--baseline: it is no report of a sweep ({}); {}", error.what(), kHowToMake);
  }
}

Json to_json(const Comparison& comparison) {
  Json rows = Json::array();
  for (const ComparedRow& row : comparison.rows) {
    rows.push_back({{"collective", row.what},
                    {"bytes", row.bytes},
                    {"baseline_us", row.baseline_us},
                    {"now_us", row.now_us},
                    {"speed", row.speed.estimate},
                    {"speed_low", or_null(row.speed.low)},
                    {"speed_high", or_null(row.speed.high)},
                    {"chance", or_null(row.chance)},
                    {"beside_peer", row.beside_peer},
                    {"slower", row.slower}});
  }
  return {{"baseline", comparison.baseline},       {"fail_below", or_null(comparison.fail_below)},
          {"slower", comparison.is_slower()},      {"verdict", comparison.verdict()},
          {"differences", comparison.differences}, {"rows", rows}};
}

std::string to_text(const Comparison& comparison) {
  std::string text = fmt::format("\n# baseline: {}; speed: of the baseline's, with an interval of 95 %\n",
                                 comparison.baseline);
  for (const std::string& difference : comparison.differences) text += fmt::format("# {}\n", difference);
  text += fmt::format("\n{:>6} {:>11} {:>9} {:>7} {:>15} {:>9}\n", "size", "baseline us", "now us", "speed",
                      "95 %", "chance");
  for (const ComparedRow& row : comparison.rows) {
    const std::string interval =
        row.speed.low ? fmt::format("{:.3f} to {:.3f}", *row.speed.low, *row.speed.high) : std::string("-");
    const std::string chance = row.chance ? fmt::format("{:.2g}", *row.chance) : std::string("-");
    text += fmt::format("{:>6} {:>11} {:>9} {:>7.3f} {:>15} {:>9}{}\n", format_size(row.bytes),
                        three_digits(row.baseline_us), three_digits(row.now_us), row.speed.estimate, interval,
                        chance, row.slower ? " slower" : "");
  }
  return text + "\n" + comparison.verdict();
}

}  // namespace cohort::bench
