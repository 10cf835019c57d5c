#include "replay.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "layout.h"

namespace cohort::conformance {
namespace {

Json outcome_of(const std::function<Json(const Layout&)>& scenario, const Layout& layout) {
  try {
    return scenario(layout);
  } catch (const Error& error) {
    return {{"error", to_string(error.code())}, {"text", error.what()}};
  } catch (const std::exception& error) {
    return {{"error", "the user's own"}, {"text", error.what()}};
  }
}

bool is_error(const Json& outcome) { return outcome.is_object() && outcome.contains("error"); }

bool applies(const Difference& difference, const Layout& layout) {
  return difference.where.empty() ||
         fmt::format(" {} ", difference.where).find(fmt::format(" {} ", layout.prefix())) !=
             std::string::npos;
}

void count_rule(const Record& record, Tally& tally) {
  if (find_rule(record.id) == nullptr) {
    std::cout << "golden: " << record.id << " has neither a scenario nor a rule (" << record.input << ")\n";
    ++tally.failed;
  } else {
    ++tally.without_meaning;
  }
}

/// The line as a scenario of its own.
Scenario scenario_of(const Record& record, const Family& family) {
  Scenario scenario{record.name,
                    [&record, run = family.run](const Layout& /*layout*/) { return run(record); }};
  for (const FamilyDifference& difference : family.differences) {
    if (!matches(record.id, difference.pattern)) continue;
    scenario.differences.push_back(
        {"", difference.why,
         [&record, outcome = difference.outcome](const Layout& /*layout*/) { return outcome(record); }});
  }
  return scenario;
}

/// Whether a program replays the layout.
bool is_known(std::string_view layout) {
  return Layout::exists(layout) || is_task_layout(layout) || layout == kTrainingLayout;
}

}  // namespace

bool same_outcome(const Json& a, const Json& b) {
  if (is_error(a) || is_error(b)) return is_error(a) && is_error(b);
  if (a.is_number() && b.is_number() && !a.is_boolean()) {
    const double x = a.get<double>();
    const double y = b.get<double>();
    return std::abs(x - y) <= 2e-6 * std::max(1.0, std::abs(y));
  }
  if (a.type() != b.type() || a.size() != b.size()) return false;
  if (a.is_array()) return std::equal(a.begin(), a.end(), b.begin(), same_outcome);
  if (!a.is_object()) return a == b;
  return std::ranges::all_of(a.items(), [&](const auto& item) {
    return b.contains(item.key()) && same_outcome(item.value(), b.at(item.key()));
  });
}

Tally& Tally::operator+=(const Tally& other) {
  replayed += other.replayed;
  equal += other.equal;
  different += other.different;
  without_meaning += other.without_meaning;
  failed += other.failed;
  return *this;
}

std::string describe(const Tally& tally) {
  return fmt::format(
      "golden: {} replayed, {} equal, {} deliberately different, {} without meaning, {} failed",
      tally.replayed, tally.equal, tally.different, tally.without_meaning, tally.failed);
}

Replay::Replay(const Recording& recording, Bootstrap* bootstrap)
    : records_(recording.records), is_whole_(recording.is_whole), bootstrap_(bootstrap) {
  for (const auto& scenarios : {run_scenarios(),
                                merge_scenarios(),
                                reduce_scenarios(),
                                gather_scenarios(),
                                all_reduce_scenarios(),
                                gradient_scenarios(),
                                sparse_scenarios(),
                                operator_scenarios(),
                                cross_device_ops_scenarios(),
                                packing_scenarios(),
                                options_scenarios(),
                                context_scenarios(),
                                afterwards_scenarios(),
                                cluster_scenarios(),
                                variable_creation_scenarios(),
                                variable_assignment_in_replicas_scenarios(),
                                variable_assignment_across_scenarios(),
                                variable_read_scenarios(),
                                variable_scatter_scenarios(),
                                variable_use_scenarios(),
                                variable_reduction_scenarios(),
                                variable_worker_scenarios(),
                                input_scenarios(),
                                input_function_scenarios(),
                                input_worker_scenarios(),
                                input_size_scenarios(),
                                reduce_to_scenarios(),
                                broadcast_to_scenarios(),
                                update_scenarios(),
                                placement_scenarios(),
                                constructor_scenarios(),
                                name_scenarios(),
                                partitioner_scenarios(),
                                preemption_scenarios(),
                                sharded_read_scenarios(),
                                sharded_use_scenarios()}) {
    for (const Scenario& scenario : scenarios) add(scenario);
  }
  for (const auto& families :
       {server_families(), partitioner_families(), sharded_read_families(), sharded_change_families(),
        sharded_use_families(), shard_placement_families(), server_scope_families(),
        server_creation_families(), preemption_families(), checkpoint_variable_families(),
        checkpoint_shard_families(), checkpoint_matching_families(), checkpoint_manager_families(),
        checkpoint_model_families()}) {
    for (const Family& family : families) add(family);
  }
}

void Replay::add(const Family& family) {
  for (const Record& record : records_) {
    const bool fits = std::ranges::any_of(
        family.patterns, [&](std::string_view pattern) { return matches(record.id, pattern); });
    if (fits && !record.arguments.is_null()) scenarios_.emplace(record.name, scenario_of(record, family));
  }
}

void Replay::add(const Scenario& scenario) { scenarios_.emplace(scenario.name, scenario); }

const Scenario* Replay::scenario_for(const Record& record) const {
  const auto found = scenarios_.find(record.name);
  return found != scenarios_.end() && find_rule(record.id) == nullptr ? &found->second : nullptr;
}

Tally Replay::replay(std::string_view layout) {
  Tally tally;
  for (const Record& record : records_) {
    if (record.layout != layout) continue;
    if (const Scenario* scenario = scenario_for(record))
      replay_one(record, *scenario, tally);
    else
      count_rule(record, tally);
  }
  return tally;
}

int Replay::check_tables() const {
  if (!is_whole_) return 0;
  std::ifstream file(COHORT_CONFORMANCE_DOC);
  const std::string explanations{std::istreambuf_iterator<char>(file), {}};
  int wrong = 0;
  const auto require_row = [&](std::string_view reason) {
    if (explanations.find(fmt::format("| {} |", reason)) != std::string::npos) return;
    std::cout << "golden: docs/conformance.md has no row for '" << reason << "'\n";
    ++wrong;
  };
  std::set<const Rule*> fitting;
  for (const Record& record : records_)
    if (scenario_for(record) == nullptr) fitting.insert(find_rule(record.id));
  for (const Rule& rule : all_rules()) {
    require_row(rule.reason);
    if (fitting.contains(&rule)) continue;
    std::cout << "golden: no recorded line falls under the rule " << rule.pattern << "\n";
    ++wrong;
  }
  for (const auto& [name, scenario] : scenarios_)
    for (const Difference& difference : scenario.differences) require_row(difference.why);
  for (const Record& record : records_) {
    if (is_known(record.layout)) continue;
    std::cout << "golden: no program replays " << record.id << ", whose layout is " << record.layout << "\n";
    ++wrong;
  }
  return wrong;
}

void Replay::replay_one(const Record& record, const Scenario& scenario, Tally& tally) {
  ++tally.replayed;
  // After an error a strategy of several workers is of no more use, so each line has its own.
  const Layout layout(record.layout, bootstrap_);
  const auto combined = [&](const Json& own) { return layout.is_multi_worker() ? combine(own) : own; };
  const Json outcome = combined(outcome_of(scenario.run, layout));
  for (const Difference& difference : scenario.differences) {
    if (!applies(difference, layout)) continue;
    const Json expected = combined(difference.outcome(layout));
    if (same_outcome(outcome, expected)) {
      ++tally.different;
      return;
    }
    ++tally.failed;
    if (layout.worker() == 0)
      std::cout << "golden: " << record.id << " (" << record.input << ")\n  came out " << outcome.dump()
                << "\n  expected " << expected.dump() << ", deliberately: " << difference.why << "\n";
    return;
  }
  if (same_outcome(outcome, record.outcome)) {
    ++tally.equal;
    return;
  }
  ++tally.failed;
  if (layout.worker() == 0)
    std::cout << "golden: " << record.id << " (" << record.input << ")\n  came out " << outcome.dump()
              << "\n  expected " << record.outcome.dump() << "\n";
}

/// One outcome where all workers agree, else each worker's.
Json Replay::combine(const Json& own) const {
  const std::vector<std::string> all = bootstrap_->exchange(own.dump());
  Json by_worker = Json::object();
  bool alike = true;
  for (std::size_t worker = 0; worker < all.size(); ++worker) {
    const Json theirs = Json::parse(all[worker]);
    alike = alike && same_outcome(theirs, own);
    by_worker[fmt::format("worker{}", worker)] = theirs;
  }
  return alike ? own : by_worker;
}

}  // namespace cohort::conformance
