#include "report/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.h"
#include "report/page.h"
#include "timing.h"

namespace cohort::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

TEST(ChanceOfLarger, IsTheShareOfOrdersThatAreAsExtreme) {
  EXPECT_DOUBLE_EQ(chance_of_larger(std::array{1.0, 2.0, 3.0}, std::array{4.0, 5.0, 6.0}), 1.0 / 20);
  EXPECT_DOUBLE_EQ(chance_of_larger(std::array{1.0, 2.0, 4.0}, std::array{3.0, 5.0, 6.0}), 2.0 / 20);
  EXPECT_DOUBLE_EQ(chance_of_larger(std::array{4.0, 5.0, 6.0}, std::array{1.0, 2.0, 3.0}), 1);
  EXPECT_DOUBLE_EQ(chance_of_larger(std::array{7.0, 7.0}, std::array{7.0, 7.0, 7.0}), 1);
}

TEST(ChanceOfLarger, CountsEqualValuesAsEveryOrderOfThem) {
  const std::vector<double> before{1, 2, 2, 3};
  const std::vector<double> now{2, 3, 3, 4};
  std::vector<double> pooled = before;
  pooled.insert(pooled.end(), now.begin(), now.end());
  const auto rank = [&](double value) {  // the mean of the ranks of equal values
    const auto less = std::ranges::count_if(pooled, [&](double other) { return other < value; });
    const auto equal = std::ranges::count(pooled, value);
    return static_cast<double>(less) + (static_cast<double>(equal) + 1) / 2;
  };
  double sum = 0;
  for (const double value : now) sum += rank(value);
  int all = 0;
  int as_large = 0;
  for (unsigned chosen = 0; chosen < 1U << pooled.size(); ++chosen) {
    double other = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < pooled.size(); ++i) {
      if ((chosen >> i & 1U) == 0) continue;
      other += rank(pooled[i]);
      ++count;
    }
    if (count != now.size()) continue;
    ++all;
    if (other >= sum) ++as_large;
  }
  EXPECT_DOUBLE_EQ(chance_of_larger(before, now), static_cast<double>(as_large) / all);
}

TEST(ChanceOfLarger, IsLeastWhereAllAreLarger) {
  std::vector<double> before(9);
  std::vector<double> now(9);
  for (std::size_t i = 0; i < now.size(); ++i) {
    before[i] = static_cast<double>(i);
    now[i] = static_cast<double>(100 + i);
  }
  EXPECT_DOUBLE_EQ(least_chance(9, 9), 1.0 / 48620);
  EXPECT_NEAR(chance_of_larger(before, now), least_chance(9, 9), 1e-12);
}

TEST(Corrected, IsHolmsStepDown) {
  const std::vector<double> chances = corrected(std::array{0.01, 0.04, 0.03, 0.9});
  EXPECT_DOUBLE_EQ(chances[0], 0.04);
  EXPECT_DOUBLE_EQ(chances[1], 0.09);
  EXPECT_DOUBLE_EQ(chances[2], 0.09);
  EXPECT_DOUBLE_EQ(chances[3], 0.9);
}

TEST(QuotientOfSamples, HasAnIntervalWhereThereAreValuesEnough) {
  const Quotient few = quotient(std::array{2.0, 2.2}, std::array{1.0, 1.1});
  EXPECT_DOUBLE_EQ(few.estimate, 2.0);
  EXPECT_FALSE(few.low || few.high);
  const Quotient more = quotient(std::array{2.0, 2.02, 2.04, 2.06}, std::array{1.0, 1.01, 1.02, 1.03});
  EXPECT_NEAR(more.estimate, 2.0, 1e-9);
  // Of 70 orders one on each side may lie outside.
  EXPECT_DOUBLE_EQ(more.low.value(), 2.0 / 1.03);
  EXPECT_DOUBLE_EQ(more.high.value(), 2.06);
}

TEST(QuotientOfSamples, HasTheTrueOneInItsInterval) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> time(0, 0.1);
  int inside = 0;
  constexpr int kTrials = 1000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> before(9);
    std::vector<double> now(9);
    for (double& each : before) each = 1.25 * time(random);
    for (double& each : now) each = time(random);
    const Quotient found = quotient(before, now);
    if (*found.low <= 1.25 && 1.25 <= *found.high) ++inside;
  }
  EXPECT_GE(inside, 950 - 20);  // three standard deviations of the trials' number
}

// A run as those that were measured: between two ranks on two virtual cores, times of the rounds spread by 3
// %, some are disturbed, and the whole machine is up to 2.5 times as slow in one run as in another, for the
// peer as well.
class Runs {
 public:
  explicit Runs(unsigned seed) : random_(seed) {}

  struct Options {
    double time = 1;  ///< of Cohort's calls, beside what they took before
    double machine = 1;
    std::size_t rounds = kTestedRounds;
    bool peer = true;
  };

  Json run(const Options& options) {
    Json results = Json::array();
    for (std::size_t bytes = 4; bytes <= std::size_t{64} << 20; bytes *= 4) {
      const double usual = options.machine * (0.1 + 1e-4 * static_cast<double>(bytes));
      results.push_back(row("cohort", bytes, options.time * usual, options.rounds));
      if (options.peer) results.push_back(row("mpi", bytes, 3 * usual, options.rounds));
    }
    return {{"environment",
             {{"version", "1.2.3"},
              {"build", "Release"},
              {"date", "2026-01-01T00:00:00Z"},
              {"cpu_model", "CPU"},
              {"cores_available", 2},
              {"nodes", 1},
              {"gpu", nullptr},
              {"mpi_library", "MPI"}}},
            {"results", results}};
  }

  double machine() { return std::uniform_real_distribution<double>(1, 2.5)(random_); }

 private:
  Json row(const char* library, std::size_t bytes, double usual, std::size_t rounds) {
    std::vector<double> times(rounds);
    std::lognormal_distribution<double> spread(0, 0.03);
    std::bernoulli_distribution disturbed(0.05);
    for (double& time : times) time = usual * spread(random_) * (disturbed(random_) ? 1.6 : 1.0);
    return {{"collective", "all_reduce"},
            {"library", library},
            {"algorithm", library},
            {"dtype", "float32"},
            {"op", "sum"},
            {"members", 2},
            {"bytes", bytes},
            {"in_place", true},
            {"inputs", "rewritten"},
            {"buffers", "heap"},
            {"median_us", median(times)},
            {"rounds_us", times}};
  }

  std::mt19937 random_;
};

Comparison compare_one(const Json& baseline, const Json& now, std::optional<double> fail_below) {
  return compare(std::span(&baseline, 1), now, fail_below);
}

constexpr int kRuns = 60;

TEST(FailBelow, HasNoFalseAlarmOnAMachineThatDrifts) {
  Runs runs(1);
  int alarms = 0;
  for (int i = 0; i < kRuns; ++i) {
    const Json baseline = runs.run({.machine = runs.machine()});
    if (compare_one(baseline, runs.run({.machine = runs.machine()}), 0.95).is_slower()) ++alarms;
  }
  EXPECT_EQ(alarms, 0);
}

TEST(FailBelow, FindsASlowdownOfTenPerCent) {
  Runs runs(2);
  int found = 0;
  for (int i = 0; i < kRuns; ++i) {
    const Json baseline = runs.run({});
    if (compare_one(baseline, runs.run({.time = 1.1}), 0.95).is_slower()) ++found;
  }
  EXPECT_GE(found, kRuns * 95 / 100);
}

TEST(FailBelow, RarelyFailsASpeedThatIsJustTheBound) {
  Runs runs(3);
  int alarms = 0;
  for (int i = 0; i < kRuns; ++i) {
    const Json baseline = runs.run({.peer = false});
    if (compare_one(baseline, runs.run({.time = 1 / 0.95, .peer = false}), 0.95).is_slower()) ++alarms;
  }
  EXPECT_LE(alarms, 3);  // 1 %, and three standard deviations
}

TEST(FailBelow, NeedsThePeerToTellASlowMachineFromASlowProgram) {
  Runs runs(4);
  const Json slow_machine = runs.run({.machine = 2});
  const Comparison beside_peer = compare_one(runs.run({}), slow_machine, 0.95);
  EXPECT_FALSE(beside_peer.is_slower());
  EXPECT_TRUE(std::ranges::all_of(beside_peer.rows, &ComparedRow::beside_peer));
  EXPECT_THAT(beside_peer.verdict(), StartsWith("passed: none of 13 sizes"));
  const Comparison alone = compare_one(runs.run({.peer = false}), slow_machine, 0.95);
  EXPECT_THAT(alone.verdict(), StartsWith("failed: 13 of 13 sizes have less than 0.95"));
}

TEST(FailBelow, CountsWhatEachOfSeveralBaselinesShows) {
  Runs runs(5);
  const std::vector<Json> baselines{runs.run({}), runs.run({.time = 1.2}), runs.run({})};
  EXPECT_FALSE(compare(baselines, runs.run({.time = 1.2}), 0.95).is_slower());
  EXPECT_TRUE(compare(baselines, runs.run({.time = 1.4}), 0.95).is_slower());
}

TEST(FailBelow, OfATenthNamesTheSizesThatAreSlow) {
  Runs runs(6);
  const Json baseline = runs.run({});
  Json now = runs.run({});
  for (Json& row : now["results"]) {
    if (row["bytes"] != 1024 || row["library"] != "cohort") continue;
    for (Json& time : row["rounds_us"]) time = time.get<double>() * 1.3;
  }
  const Comparison comparison = compare_one(baseline, now, 0.95);
  EXPECT_EQ(std::ranges::count_if(comparison.rows, &ComparedRow::slower), 1);
  const auto slow = std::ranges::find_if(comparison.rows, &ComparedRow::slower);
  EXPECT_EQ(slow->bytes, 1024u);
  EXPECT_NEAR(slow->speed.estimate, 1 / 1.3, 0.05);
  EXPECT_EQ(comparison.verdict(), "failed: 1 of 13 sizes has less than 0.95 of the baseline's speed");
  EXPECT_THAT(to_text(comparison), HasSubstr(" slower\n"));
  const Json json = to_json(comparison);
  EXPECT_TRUE(json.at("slower"));
  EXPECT_THAT(json.at("rows"), SizeIs(13));
}

std::string complaint(const Json& baseline, const Json& now, std::optional<double> fail_below) {
  try {
    (void)compare_one(baseline, now, fail_below);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(Comparing, RefusesWhatCannotBeCompared) {
  Runs runs(7);
  const Json now = runs.run({});
  EXPECT_THAT(complaint(runs.run({.rounds = 1}), now, 0.95),
              HasSubstr("1 round of the baseline and 25 now are too few"));
  EXPECT_THAT(complaint(runs.run({.rounds = 1}), now, {}), IsEmpty());
  Json other = runs.run({});
  other["environment"]["cpu_model"] = "Another";
  EXPECT_THAT(complaint(other, now, 0.95), HasSubstr("cpu_model: CPU instead of Another"));
  EXPECT_THAT(compare_one(other, now, {}).differences, ElementsAre("cpu_model: CPU instead of Another"));
  other = runs.run({});
  for (Json& row : other["results"]) row["dtype"] = "float64";
  EXPECT_THAT(complaint(other, now, {}), HasSubstr("none of these calls"));
  EXPECT_THAT(complaint(Json{{"dispatch", Json::array()}}, now, {}), HasSubstr("no results of a sweep"));
  other = runs.run({});
  for (Json& row : other["results"]) row.erase("median_us");
  EXPECT_THAT(complaint(other, now, {}), HasSubstr("no report of a sweep"));
  other = runs.run({});
  for (Json& row : other["results"]) row["rounds_us"] = {"fast", 0};
  EXPECT_THAT(complaint(other, now, {}), HasSubstr("no report of a sweep"));
  for (Json& row : other["results"]) row["rounds_us"] = {0, 1};
  EXPECT_THAT(complaint(other, now, {}), HasSubstr("is no time"));
}

TEST(Page, HasTheReportAndNothingThatATextOfItCouldMakeOfIt) {
  const Json report{{"environment", {{"command_line", "</script><script>alert(1)</script><!-- & \xff"}}}};
  std::ostringstream page;
  write_page(page, report);
  EXPECT_THAT(page.str(), StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page.str(), Not(HasSubstr("alert(1)</script>")));
  for (const char* from_elsewhere : {"src=", "href=", "url(", "@import"})
    EXPECT_THAT(page.str(), Not(HasSubstr(from_elsewhere)));
  const Json back = Json::parse(results_in_page(page.str()));
  EXPECT_EQ(back["environment"]["command_line"], "</script><script>alert(1)</script><!-- & \ufffd");
}

TEST(ReadResults, TakesReportsAndPages) {
  const Json report{{"environment", Json::object()}, {"results", Json::array()}};
  const std::string path = testing::TempDir() + "comparison_test_results";
  std::ofstream(path) << report.dump(2);
  EXPECT_EQ(read_results("--baseline", path), report);
  {
    std::ofstream page(path);
    write_page(page, report);
  }
  EXPECT_EQ(read_results("--baseline", path), report);
  const auto complaint_about = [&](const std::string& text) -> std::string {
    std::ofstream(path) << text;
    try {
      (void)read_results("--baseline", path);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(complaint_about("bytes,median_us\n"), HasSubstr("is not JSON at byte 1"));
  EXPECT_THAT(complaint_about("<!DOCTYPE html><p>Another page</p>"), HasSubstr("is not JSON"));
  std::remove(path.c_str());
  EXPECT_THROW((void)read_results("--baseline", path), UsageError);
}

}  // namespace
}  // namespace cohort::bench
