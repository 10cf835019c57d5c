// The recorded lines whose tasks are processes: this program is the chief, and the other tasks are the same
// program, started again. Each cluster is started once, for all of its lines.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>

#include <cohort/base/config.h>
#include <cohort/coordinator/serve.h>
#include <cohort/resolvers/task_cluster_resolver.h>

#include "replay.h"
#include "tasks/coordinated.h"
#include "tasks/training_tasks.h"

namespace cohort::conformance {
namespace {

int run_task() {
  try {
    const TaskClusterResolver cluster;
    return serve(ParameterServerStrategy(cluster.place()));
  } catch (const std::exception& error) {
    std::cerr << "golden: a task ends: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}

void add_all(const std::vector<Family>& families, Replay& replay) {
  for (const Family& family : families) replay.add(family);
}

/// The lines of one layout, with what is wrong with the tables.
Tally replayed(Replay& replay, std::string_view layout) {
  Tally tally = replay.replay(layout);
  tally.failed += replay.check_tables();
  return tally;
}

void add_faults(const LostServers& lost_servers, Replay& replay) {
  add_all(lost_servers.families(), replay);
  add_all(lost_worker_families(), replay);
  replay.add(restarted_coordinator_family());
}

/// The lines of `coordinator` and `fault` in one layout.
Tally replay_coordinated(const Recording& recording, const LostServers& lost_servers, std::string_view layout,
                         int workers, int servers) {
  Coordinated cluster(workers, servers);
  Replay replay(recording, nullptr);
  add_faults(lost_servers, replay);
  for (const auto& families : {result_families(cluster), argument_families(cluster),
                               context_families(cluster), queue_families(cluster), error_families(cluster),
                               per_worker_families(cluster), server_variable_families(cluster)}) {
    add_all(families, replay);
  }
  return replayed(replay, layout);
}

/// The lines of strategies with servers and coordinators that were recorded first, in one layout.
Tally replay_first(const Recording& recording, const LostServers& lost_servers, std::string_view layout,
                   int workers, int servers) {
  const Coordinated cluster(workers, servers);
  Replay replay(recording, nullptr);
  add_faults(lost_servers, replay);
  for (const auto& scenarios : {server_strategy_scenarios(cluster), first_call_scenarios(cluster)})
    for (const Scenario& scenario : scenarios) replay.add(scenario);
  return replayed(replay, layout);
}

/// The lines of `fault` in one layout.
Tally replay_faults(const Recording& recording, const LostServers& lost_servers, std::string_view layout) {
  Replay replay(recording, nullptr);
  add_faults(lost_servers, replay);
  return replayed(replay, layout);
}

/// The lines of `ps_v1` in one layout; no workers where its strategies cannot be made.
Tally replay_training(const Recording& recording, std::string_view layout, int workers, int servers) {
  Replay replay(recording, nullptr);
  std::optional<TrainingTasks> tasks;
  if (workers == 0) {
    add_all(training_constructor_families(), replay);
  } else {
    tasks.emplace(workers, servers);
    add_all(training_property_families(*tasks), replay);
    add_all(training_step_families(*tasks), replay);
  }
  return replayed(replay, layout);
}

}  // namespace
}  // namespace cohort::conformance

int main(int argc, char** argv) {
  using namespace cohort::conformance;
  if (cohort::config().task_descriptor() >= 0) return run_task();
  if (argc == 2) return train_as_coordinator(argv[1]);
  const Recording recording = read_records(argc, argv);
  const LostServers lost_servers;
  Tally tally = replay_first(recording, lost_servers, "ps11", 1, 1);
  tally += replay_first(recording, lost_servers, "ps22", 2, 2);
  tally += replay_coordinated(recording, lost_servers, "ps_w1_p1", 1, 1);
  tally += replay_coordinated(recording, lost_servers, "ps_w2_p2", 2, 2);
  tally += replay_faults(recording, lost_servers, "ps_w2_p1");
  tally += replay_training(recording, "psv1", 0, 0);
  tally += replay_training(recording, "psv1_c1_w1_p1", 2, 1);
  tally += replay_training(recording, "psv1_w1_p1", 1, 1);
  tally += replay_training(recording, "psv1_w2_p2", 2, 2);
  tally += replay_training(recording, "psv1_w2_p3", 2, 3);
  std::cout << describe(tally) << '\n';
  return tally.failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
