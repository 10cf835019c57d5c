#include <unistd.h>

#include <set>

#include "../scenarios/common.h"
#include "faults.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kOneService = "one way to notice failures";
constexpr std::string_view kOneCoordinator = "a job has one coordinator";
const ClusterTask kFirstServer{"ps", 0};

RemoteValue<int> schedule_add_here(const Coordinated& cluster) {
  return cluster.coordinator().schedule<add_here>(cluster.counter);
}

Json join(const Coordinated& cluster) {
  return told([&] { cluster.coordinator().join(); });
}
Json schedule(const Coordinated& cluster) {
  return told([&] { static_cast<void>(schedule_add_here(cluster)); });
}
Json read_counter(const Coordinated& cluster) {
  std::int64_t value = 0;
  Json outcome = told([&] {
    // A server of this host is not needed for reading what it kept.
    cluster.counter.assign_add(std::int64_t{0});
    value = value_of(cluster.counter);
  });
  if (outcome[0] == "ok") outcome[1] = value;
  return outcome;
}

Json kill_server(Coordinated& cluster, int server) {
  std::vector<RemoteValue<int>> earlier;
  for (int i = 0; i < 5; ++i) earlier.push_back(schedule_add_here(cluster));
  cluster.coordinator().join();
  cluster.processes().kill({"ps", server});
  Json outcome{{"schedule_right_after", schedule(cluster)}, {"join", join(cluster)}};
  outcome["second_join"] = join(cluster);
  outcome["schedule_later"] = schedule(cluster);
  outcome["join_later"] = join(cluster);
  outcome["read_on_coordinator"] = read_counter(cluster);
  const int worker = earlier.front().fetch();
  if (worker >= 0 && worker < cluster.workers()) outcome["earlier_result"] = worker;
  return outcome;
}

Json kill_server_in_flight(Coordinated& cluster) {
  std::vector<RemoteValue<std::int64_t>> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(cluster.schedule_waiting(i));
  cluster.begun().await(2);
  cluster.processes().kill(kFirstServer);
  Json outcome{{"join", join(cluster)}};
  std::set<Json> fetches;
  for (const auto& value : waiting) fetches.insert(name_or_value([&] { return Json(value.fetch()); }));
  outcome["fetches"] = fetches;
  outcome["second_join"] = join(cluster);
  return outcome;
}

Json restart_server_empty(Coordinated& cluster) {
  cluster.processes().kill(kFirstServer);
  if (::ftruncate(cluster.processes().place(kFirstServer).memory, 0) != 0) return "its memory stays";
  cluster.processes().start(kFirstServer);
  const Json scheduled = schedule(cluster);
  return {{"schedule", scheduled[0]},
          {"join", join(cluster)},
          {"read", read_counter(cluster)},
          {"new_strategy_in_same_process", nullptr}};
}

Json kill_worker_then_server(Coordinated& cluster) {
  cluster.processes().kill({"worker", 0});
  for (int i = 0; i < 5; ++i) static_cast<void>(schedule_add_here(cluster));
  const Json after_worker = join(cluster)[0];
  cluster.processes().kill(kFirstServer);
  static_cast<void>(schedule(cluster));
  return {{"join_after_worker", after_worker}, {"join_after_ps", join(cluster)}};
}

const Json kUnavailable{"raised", "UnavailableError"};
const Json kOk{"ok", nullptr};

/// What the original would say if it had one way to notice the loss of a server.
FamilyDifference noticed_otherwise(std::string_view pattern) {
  return {pattern, kOneService, [](const Record& record) {
            Json outcome = record.outcome;
            outcome["join"] = kUnavailable;
            if (outcome.contains("join_later")) outcome["join_later"] = kUnavailable;
            if (outcome.contains("fetches")) outcome["fetches"] = {"CancelledError", "UnavailableError"};
            return outcome;
          }};
}

FamilyDifference without_second_strategy(std::string_view pattern) {
  return {pattern, kOneCoordinator, [](const Record& record) {
            Json outcome = record.outcome;
            outcome["join"] = kUnavailable;
            outcome["new_strategy_in_same_process"] = nullptr;
            return outcome;
          }};
}

/// Texts, and which worker a call came to, are not compared.
Json compared(Json outcome, const Record& record) {
  if (record.outcome.contains("join_text")) outcome["join_text"] = record.outcome.at("join_text");
  if (outcome.contains("earlier_result") && outcome["earlier_result"].is_number())
    outcome["earlier_result"] = record.outcome.at("earlier_result");
  return outcome;
}

}  // namespace

LostServers::LostServers() {
  const auto kill_first = [](Coordinated& cluster) { return kill_server(cluster, 0); };
  const auto kill_second = [](Coordinated& cluster) { return kill_server(cluster, 1); };
  add({"*/ps_kill", "*/ps_kill_cs"}, 1, kill_first, {noticed_otherwise("*/ps_kill_cs")});
  add({"*/ps_kill_2ps"}, 2, kill_first);
  add({"*/ps_kill_other"}, 2, kill_second);
  add({"*/ps_kill_inflight", "*/ps_kill_inflight_cs"}, 1, kill_server_in_flight,
      {noticed_otherwise("*/ps_kill_inflight_cs")});
  add({"*/ps_kill_restart", "*/ps_kill_restart_cs"}, 1, restart_server_empty,
      {without_second_strategy("*/ps_kill_restart*")});
  add({"*/worker_then_ps"}, 1, kill_worker_then_server);
}

void LostServers::add(const std::vector<std::string_view>& patterns, int servers,
                      const std::function<Json(Coordinated&)>& play,
                      std::vector<FamilyDifference> differences) {
  // Tasks end with the thread that started them: that is this one. What runs the lines ends them before.
  const std::shared_future<Json> outcome = std::async(
      std::launch::async,
      [play](std::unique_ptr<Coordinated> cluster) {
        cluster->await_workers();
        return play(*cluster);
      },
      std::make_unique<Coordinated>(2, servers));
  families_.push_back({patterns, [outcome](const Record& record) { return compared(outcome.get(), record); },
                       std::move(differences)});
}

}  // namespace cohort::conformance
