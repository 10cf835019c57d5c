// A sweep beside the results of an earlier one, size by size, and the verdict of --fail-below.
//
// The sample of a size are the medians of its rounds: loops that follow each other are disturbed together,
// rounds lie apart. A size is slower when a test by ranks says that its speed is below the asked part of the
// baseline's, by its exact distribution and with a correction for the number of sizes. Where both runs have
// measured the same peer, its times stand for the machine: the size must then be slower beside these, too, so
// that a machine that has become slower is not taken for a program that has. Of several baselines each must
// show it: how they differ is how runs differ without a reason in Cohort.
//
// The two runs are not in turns, and what changes in between for Cohort alone is taken for a change of
// Cohort's: where its processes lie, for example. against.sh has two programs take turns, and tests their
// ratios.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report.h"
#include "report/statistics.h"

namespace cohort::bench {

/// How probable it may be at most that any size is called slower whose speed is just the bound. One whose
/// speed has not changed is called slower far less often.
inline constexpr double kMostFalseAlarms = 0.01;

/// By default, where something is tested: as many show 10 % where rounds differ by 3 %.
inline constexpr int kTestedRounds = 25;

/// Cohort's calls at a size that both runs have.
struct ComparedRow {
  std::string what;  ///< `all_reduce`
  std::size_t bytes = 0;
  double baseline_us = 0;
  double now_us = 0;
  Quotient speed = {};  ///< now, as a part of the baseline's
  std::optional<double> chance =
      {};                    ///< that a speed of the bound looks so slow; corrected. Unset: not tested
  bool beside_peer = false;  ///< tested beside the peer's times as well
  bool slower = false;
};

struct Comparison {
  std::string baseline;  ///< which one, in words
  std::optional<double> fail_below = {};
  std::vector<ComparedRow> rows = {};
  std::vector<std::string> differences = {};  ///< of the two runs' surroundings, in words

  [[nodiscard]] bool is_slower() const;
  /// In a sentence.
  [[nodiscard]] std::string verdict() const;
};

/// What an earlier run wrote: its JSON report, or its page. `option` is what messages call it.
/// @throws UsageError when the file cannot be read, or is neither.
[[nodiscard]] Json read_results(const std::string& option, const std::string& path);

/// All are JSON reports of sweeps. What counts of a size is the baseline beside which it is least probably
/// slower.
/// @throws UsageError when there are no calls in common, or no results of a sweep; with `fail_below`, also
/// when the machine is another one, or rounds are so few that nothing could be shown.
[[nodiscard]] Comparison compare(std::span<const Json> baselines, const Json& now,
                                 std::optional<double> fail_below);

/// Before anything is measured. @throws UsageError when `rounds` of `sizes` sizes could show nothing.
void require_enough_rounds(const Json& baseline, std::size_t sizes, std::size_t rounds);

[[nodiscard]] Json to_json(const Comparison& comparison);

/// For people: a table and the verdict.
[[nodiscard]] std::string to_text(const Comparison& comparison);

}  // namespace cohort::bench
