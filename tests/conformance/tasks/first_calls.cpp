// The first file's lines of coordinators.
#include <algorithm>
#include <memory>
#include <set>

#include <cohort/input/dataset.h>

#include "../scenarios/common.h"
#include "coordinated.h"

namespace cohort::conformance {
namespace {

Json ten_adds(const Coordinated& cluster) {
  std::vector<RemoteValue<std::int64_t>> calls;
  calls.reserve(10);
  for (int i = 0; i < 10; ++i) calls.push_back(cluster.schedule_add(2));
  cluster.coordinator().join();
  return {value_of(cluster.counter), cluster.coordinator().fetch(calls), cluster.coordinator().done()};
}

/// What one coordinator schedules, another one of the same strategy waits for.
Json second_coordinator(const Coordinated& cluster) {
  const ClusterCoordinator second(cluster.strategy());
  const auto call = cluster.schedule_add(1);
  second.join();
  return call.is_ready();
}

Json fetched_structure(const Coordinated& cluster) {
  const auto call = cluster.schedule_add(1);
  const auto [a, b, c] = cluster.coordinator().fetch(std::tuple(call, 5, std::vector{call}));
  return {{"a", a}, {"b", b}, {"c", c}};
}

/// 20 calls, of which the first are on a worker each.
Json workers_seen(const Coordinated& cluster) {
  constexpr auto kMeet = [](const InputContext& worker, const Variable& gate, int begun, int pass) {
    meet(gate, begun, pass);
    return worker.input_pipeline_id;
  };
  constexpr auto kTell = [](const InputContext& worker) { return worker.input_pipeline_id; };
  std::vector<RemoteValue<int>> calls;
  calls.reserve(20);
  for (int i = 0; i < cluster.workers(); ++i)
    calls.push_back(cluster.coordinator().schedule<kMeet>(cluster.gate, cluster.begun().output(),
                                                          cluster.pass().input()));
  cluster.let_meet(cluster.workers());
  cluster.pass().give(cluster.workers());
  for (int i = cluster.workers(); i < 20; ++i) calls.push_back(cluster.coordinator().schedule<kTell>());
  const std::vector<int> all = cluster.coordinator().fetch(calls);
  return std::set(all.begin(), all.end());
}

Json fetched_failure(const Coordinated& cluster) {
  const auto call = cluster.schedule_fail();
  Json outcome = outcome_of([&] { return Json(call.fetch()); });
  static_cast<void>(outcome_of_join(cluster.coordinator()));
  return outcome;
}

// ---- datasets of each worker

struct Pass {
  std::shared_ptr<Dataset<Tensor>::Iterator> next;
};

Pass one_to_four() {
  return {std::make_shared<Dataset<Tensor>::Iterator>(Dataset<Tensor>::range(1, 5).begin())};
}
Pass beside_a_variable() {
  const Variable own({.initial_value = number(1)});
  return one_to_four();
}

std::int64_t take(Pass& elements) {
  const auto element = (**elements.next).item<std::int64_t>();
  ++*elements.next;
  return element;
}
std::int64_t take_together(Pass& elements, const Variable& gate, int begun, int pass) {
  meet(gate, begun, pass);
  return take(elements);
}

/// Of three steps, every worker takes one; names of classes have no counterpart.
Json three_steps(const Coordinated& cluster) {
  const auto elements = cluster.coordinator().create_per_worker<one_to_four>();
  std::vector<RemoteValue<std::int64_t>> calls;
  calls.reserve(static_cast<std::size_t>(cluster.workers()));
  for (int i = 0; i < cluster.workers(); ++i)
    calls.push_back(cluster.coordinator().schedule<take_together>(
        elements, cluster.gate, cluster.begun().output(), cluster.pass().input()));
  cluster.let_meet(cluster.workers());
  cluster.pass().give(cluster.workers());
  for (int i = cluster.workers(); i < 3; ++i) calls.push_back(cluster.coordinator().schedule<take>(elements));
  std::vector<std::int64_t> taken = cluster.coordinator().fetch(calls);
  std::ranges::sort(taken);
  return {"PerWorkerDatasetFromDatasetFunction", "PerWorkerDistributedIterator", taken};
}

Json first_beside_a_variable(const Coordinated& cluster) {
  const auto elements = cluster.coordinator().create_per_worker<beside_a_variable>();
  return cluster.coordinator().schedule<take>(elements).fetch();
}

}  // namespace

std::vector<Scenario> first_call_scenarios(const Coordinated& cluster) {
  const auto plays = [&](const char* name, const std::function<Json(const Coordinated&)>& play,
                         std::vector<Difference> differences = {}) {
    return Scenario{name,
                    [&cluster, play](const Layout& /*layout*/) {
                      cluster.reset();
                      return play(cluster);
                    },
                    std::move(differences)};
  };
  return {
      plays("coordinator_singleton", second_coordinator),
      plays("schedule_join", ten_adds),
      plays("join_empty",
            [](const Coordinated& c) {
              const Json first = outcome_of_join(c.coordinator());
              return Json{first, outcome_of_join(c.coordinator()), c.coordinator().done()};
            }),
      plays("fetch_struct", fetched_structure),
      plays("schedule_lambda_tf_function_none",
            [](const Coordinated& c) {
              c.coordinator().schedule<[] {}>().fetch();
              return Json(nullptr);
            }),
      plays("worker_index", workers_seen),
      plays("fetch_before_error_join", fetched_failure),
      plays("per_worker_dataset", three_steps),
      plays("per_worker_dataset_var", first_beside_a_variable,
            {{"", kOwnVariables, [](const Layout& /*layout*/) { return Json(1); }}}),
  };
}

}  // namespace cohort::conformance
