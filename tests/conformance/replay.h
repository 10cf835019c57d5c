// Replays recorded lines and counts what came of them.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include <cohort/cluster/bootstrap.h>

#include "record.h"
#include "scenario.h"

namespace cohort::conformance {

struct Tally {
  int replayed = 0;
  int equal = 0;
  int different = 0;  ///< on purpose
  int without_meaning = 0;
  int failed = 0;

  Tally& operator+=(const Tally& other);
};

/// For example `golden: 700 replayed, 600 equal, 90 deliberately different, ...`.
[[nodiscard]] std::string describe(const Tally& tally);

class Replay {
 public:
  /// `bootstrap` connects the workers of `mwms2`, all of which replay its lines; null without workers.
  Replay(const Recording& recording, Bootstrap* bootstrap);

  /// Every line that fits becomes a scenario.
  void add(const Family& family);
  void add(const Scenario& scenario);

  /// The lines of one layout, or those without one for "". Failures are printed by worker 0.
  [[nodiscard]] Tally replay(std::string_view layout);

  /// What is wrong with the tables themselves: rules that fit no line, reasons that docs/conformance.md does
  /// not explain, and lines of a layout that no program replays. Printed; returns their number. Nothing is
  /// where a part of the lines is replayed, or others.
  [[nodiscard]] int check_tables() const;

 private:
  /// Null for a line that is not replayed.
  [[nodiscard]] const Scenario* scenario_for(const Record& record) const;
  void replay_one(const Record& record, const Scenario& scenario, Tally& tally);
  [[nodiscard]] Json combine(const Json& own) const;

  std::span<const Record> records_;
  bool is_whole_;
  Bootstrap* bootstrap_;
  std::map<std::string, Scenario, std::less<>> scenarios_;
};

/// Whether two outcomes are the same: numbers within the records' 6 digits, any error for any error.
[[nodiscard]] bool same_outcome(const Json& a, const Json& b);

// Why a recorded line is not replayed. docs/conformance.md explains each rule.

/// A line without meaning here: C++ has nothing that corresponds, or the compiler refuses it.
struct Rule {
  std::string_view pattern;  ///< of ids; `*` stands for anything
  std::string_view reason;
};

/// The first rule whose pattern fits, or null.
[[nodiscard]] const Rule* find_rule(std::string_view id);
[[nodiscard]] std::span<const Rule> all_rules();

[[nodiscard]] bool matches(std::string_view text, std::string_view pattern);

}  // namespace cohort::conformance
