// Scenarios: what golden.jsonl describes in words, done with this library; and families of them, which read
// what to do from the data of golden2.jsonl.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "layout.h"
#include "record.h"
#include "show.h"

namespace cohort::conformance {

/// An outcome that is not the original's, on purpose.
struct Difference {
  std::string_view where;                      ///< prefixes of layouts, separated by spaces; empty for all
  std::string_view why;                        ///< a row of "Deliberate differences" in docs/conformance.md
  std::function<Json(const Layout&)> outcome;  ///< what comes out instead
};

struct Scenario {
  std::string name;                        ///< as in the record's id, without the layout
  std::function<Json(const Layout&)> run;  ///< returns what comes out, or throws an Error
  std::vector<Difference> differences = {};
};

/// An outcome of some lines of a family that is not the original's, on purpose.
struct FamilyDifference {
  std::string_view pattern;                    ///< of ids, as in replay.h
  std::string_view why;                        ///< a row of "Deliberate differences" in docs/conformance.md
  std::function<Json(const Record&)> outcome;  ///< what comes out instead
};

/// Lines of golden2.jsonl that one function replays.
struct Family {
  std::vector<std::string_view> patterns;  ///< of ids, as in replay.h
  std::function<Json(const Record&)> run;  ///< returns what comes out, or throws an Error
  std::vector<FamilyDifference> differences = {};
};

/// What stands for an error of any class in expected outcomes.
[[nodiscard]] inline Json an_error() { return {{"error", "any"}}; }

[[nodiscard]] std::vector<Scenario> run_scenarios();
[[nodiscard]] std::vector<Scenario> merge_scenarios();
[[nodiscard]] std::vector<Scenario> reduce_scenarios();
[[nodiscard]] std::vector<Scenario> gather_scenarios();
[[nodiscard]] std::vector<Scenario> all_reduce_scenarios();
[[nodiscard]] std::vector<Scenario> gradient_scenarios();
[[nodiscard]] std::vector<Scenario> sparse_scenarios();
[[nodiscard]] std::vector<Scenario> operator_scenarios();
[[nodiscard]] std::vector<Scenario> cross_device_ops_scenarios();
[[nodiscard]] std::vector<Scenario> packing_scenarios();
[[nodiscard]] std::vector<Scenario> options_scenarios();
[[nodiscard]] std::vector<Scenario> context_scenarios();
[[nodiscard]] std::vector<Scenario> afterwards_scenarios();
[[nodiscard]] std::vector<Scenario> reduce_to_scenarios();
[[nodiscard]] std::vector<Scenario> broadcast_to_scenarios();
[[nodiscard]] std::vector<Scenario> update_scenarios();
[[nodiscard]] std::vector<Scenario> placement_scenarios();
[[nodiscard]] std::vector<Scenario> constructor_scenarios();
[[nodiscard]] std::vector<Scenario> name_scenarios();
[[nodiscard]] std::vector<Scenario> cluster_scenarios();
[[nodiscard]] std::vector<Scenario> variable_creation_scenarios();
[[nodiscard]] std::vector<Scenario> variable_assignment_in_replicas_scenarios();
[[nodiscard]] std::vector<Scenario> variable_assignment_across_scenarios();
[[nodiscard]] std::vector<Scenario> variable_read_scenarios();
[[nodiscard]] std::vector<Scenario> variable_scatter_scenarios();
[[nodiscard]] std::vector<Scenario> variable_use_scenarios();
[[nodiscard]] std::vector<Scenario> variable_reduction_scenarios();
[[nodiscard]] std::vector<Scenario> variable_worker_scenarios();
[[nodiscard]] std::vector<Scenario> input_scenarios();
[[nodiscard]] std::vector<Scenario> input_function_scenarios();
[[nodiscard]] std::vector<Scenario> input_worker_scenarios();
[[nodiscard]] std::vector<Scenario> input_size_scenarios();
[[nodiscard]] std::vector<Scenario> partitioner_scenarios();
[[nodiscard]] std::vector<Scenario> preemption_scenarios();
[[nodiscard]] std::vector<Scenario> sharded_read_scenarios();
[[nodiscard]] std::vector<Scenario> sharded_use_scenarios();

[[nodiscard]] std::vector<Family> server_families();
[[nodiscard]] std::vector<Family> partitioner_families();
[[nodiscard]] std::vector<Family> sharded_read_families();
[[nodiscard]] std::vector<Family> sharded_change_families();
[[nodiscard]] std::vector<Family> sharded_use_families();
[[nodiscard]] std::vector<Family> shard_placement_families();
[[nodiscard]] std::vector<Family> server_scope_families();
[[nodiscard]] std::vector<Family> server_creation_families();
[[nodiscard]] std::vector<Family> preemption_families();
[[nodiscard]] std::vector<Family> checkpoint_variable_families();
[[nodiscard]] std::vector<Family> checkpoint_shard_families();
[[nodiscard]] std::vector<Family> checkpoint_matching_families();
[[nodiscard]] std::vector<Family> checkpoint_manager_families();
[[nodiscard]] std::vector<Family> checkpoint_model_families();

}  // namespace cohort::conformance
