// Workers and servers that are killed while functions run.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "../scenarios/common.h"
#include "coordinated.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kOnce = "effects take place once";
constexpr std::string_view kNoWait = "a value of each worker is made by those that are there";
constexpr std::string_view kTakesPart = "a worker that is started again takes part";
constexpr std::string_view kSilent = "a silent worker counts as lost";
constexpr std::string_view kFirstAgain = "calls of a lost worker come first";
const ClusterTask kFirstWorker{"worker", 0};

using Play = std::function<Json(Coordinated&, const Record&)>;

Family fault(std::string_view pattern, int workers, Play play,
             std::vector<FamilyDifference> differences = {}) {
  return {{pattern},
          [workers, play = std::move(play)](const Record& record) {
            Coordinated cluster(workers, 1);
            cluster.await_workers();
            return play(cluster, record);
          },
          std::move(differences)};
}

FamilyDifference instead(std::string_view pattern, std::string_view why, const Json& changes) {
  return {pattern, why, [changes](const Record& record) {
            Json outcome = record.outcome;
            outcome.update(changes);
            return outcome;
          }};
}

Json join_without_workers(const Coordinated& cluster) {
  return told([&] { cluster.coordinator().join(); });
}

std::vector<RemoteValue<int>> schedule_adds(const Coordinated& cluster, int count) {
  std::vector<RemoteValue<int>> calls;
  calls.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) calls.push_back(cluster.coordinator().schedule<add_here>(cluster.counter));
  return calls;
}

std::vector<RemoteValue<std::int64_t>> schedule_waiting(const Coordinated& cluster, int count) {
  std::vector<RemoteValue<std::int64_t>> calls;
  calls.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) calls.push_back(cluster.schedule_waiting(i));
  return calls;
}

int add_together(const InputContext& worker, const Variable& counter, const Variable& gate, int begun,
                 int pass) {
  meet(gate, begun, pass);
  return add_here(worker, counter);
}

/// The only worker is killed, and comes back.
Json without_worker(Coordinated& cluster, const Record& /*record*/) {
  const ClusterCoordinator& coordinator = cluster.coordinator();
  cluster.processes().kill(kFirstWorker);
  static_cast<void>(schedule_adds(cluster, 3));
  Json outcome{{"done", coordinator.done()}, {"v", value_of(cluster.counter)}};
  outcome["join_within_15s"] = coordinator.done() ? "ok" : "hang";
  cluster.processes().start(kFirstWorker);
  coordinator.join();
  outcome["v_after_restart"] = value_of(cluster.counter);
  return outcome;
}

Json made_during_restart(Coordinated& cluster, const Record& /*record*/) {
  constexpr auto kFive = [] { return 5; };
  constexpr auto kSame = [](int value) { return value; };
  cluster.processes().kill(kFirstWorker);
  const auto values = cluster.coordinator().create_per_worker<kFive>();
  cluster.processes().start(kFirstWorker);
  for (int i = 0; i < 10; ++i) static_cast<void>(cluster.coordinator().schedule<kSame>(values));
  return {{"iter_blocked_over_1s", false}, {"join", join_without_workers(cluster)}};
}

Json error_and_loss(Coordinated& cluster, const Record& /*record*/) {
  const auto waiting = schedule_waiting(cluster, 2);
  cluster.begun().await(2);
  const auto failing = cluster.schedule_fail();
  const auto queued = cluster.schedule_add(1);
  cluster.processes().kill(kFirstWorker);
  cluster.open_gate();
  Json outcome{{"join", join_without_workers(cluster)},
               {"failed_fetch", name_or_value([&] { return Json(failing.fetch()); })},
               {"queued", outcome_of([&] { return Json(queued.fetch()); })},
               {"second_join", join_without_workers(cluster)}};
  // Whether the loss is known before the other worker fails is up to the machine.
  outcome["waiting"] = std::ranges::all_of(waiting, [](const auto& value) {
    const Json one = name_or_value([&] { return Json(value.fetch()); });
    return one.is_number() || one == "CancelledError";
  });
  return outcome;
}

Json results_without_workers(Coordinated& cluster, const Record& /*record*/) {
  constexpr auto kTwice = [](float value) { return 2 * value; };
  constexpr auto kFive = [] { return 5; };
  std::vector<RemoteValue<float>> fetched;
  for (int i = 1; i <= 3; ++i)
    fetched.push_back(cluster.coordinator().schedule<kTwice>(static_cast<float>(i)));
  std::vector<RemoteValue<int>> never;
  never.reserve(4);
  for (int i = 0; i < 4; ++i) never.push_back(cluster.coordinator().schedule<kFive>());
  static_cast<void>(cluster.coordinator().fetch(fetched));
  cluster.coordinator().join();
  for (int worker = 0; worker < 2; ++worker) cluster.processes().kill({"worker", worker});
  return {{"fetched_again", cluster.coordinator().fetch(fetched)},
          {"never_fetched_before", cluster.coordinator().fetch(never)}};
}

Json killed_while_idle(Coordinated& cluster, const Record& /*record*/) {
  const ClusterCoordinator& coordinator = cluster.coordinator();
  cluster.processes().kill(kFirstWorker);
  cluster.processes().start(kFirstWorker);
  static_cast<void>(schedule_adds(cluster, 20));
  const Json joined = join_without_workers(cluster);
  std::vector<RemoteValue<int>> calls;
  calls.reserve(2);
  for (int i = 0; i < 2; ++i) {
    calls.push_back(coordinator.schedule<add_together>(cluster.counter, cluster.gate,
                                                       cluster.begun().output(), cluster.pass().input()));
  }
  cluster.let_meet(2);
  cluster.pass().give(2);
  for (auto& call : schedule_adds(cluster, 198)) calls.push_back(call);
  const Json joined_again = join_without_workers(cluster);
  const std::vector<int> workers = coordinator.fetch(calls);
  return {{"join", joined[0]},
          {"v", value_of(cluster.counter)},
          {"join_after_restart", joined_again[0]},
          {"workers_that_ran_after_restart", std::set<int>(workers.begin(), workers.end())}};
}

Json killed_in_flight(Coordinated& cluster, const Record& record) {
  const auto calls = schedule_waiting(cluster, 4);
  cluster.begun().await(2);
  cluster.processes().kill(kFirstWorker);
  const bool is_started = record.outcome.contains("begun_15s_after_restart");
  if (is_started) {
    cluster.processes().start(kFirstWorker);
    cluster.begun().await();
  }
  Json outcome{
      {is_started ? "begun_15s_after_restart" : "begun_3s_after_kill", value_of(cluster.count_of_begun)}};
  cluster.open_gate();
  outcome["join"] = join_without_workers(cluster)[0];
  outcome["begun"] = value_of(cluster.count_of_begun);
  outcome["ended"] = value_of(cluster.count_of_ended);
  outcome["fetched"] = cluster.coordinator().fetch(calls);
  if (record.outcome.contains("note")) outcome["note"] = record.outcome.at("note");
  return outcome;
}

Json ended_by_signal(Coordinated& cluster, const Record& /*record*/) {
  cluster.processes().signal(kFirstWorker, SIGTERM);
  const int status = cluster.processes().wait(kFirstWorker);
  static_cast<void>(schedule_adds(cluster, 10));
  const Json joined = join_without_workers(cluster);
  return {{"server_exit_code", WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status)},
          {"join", joined[0]},
          {"v", value_of(cluster.counter)}};
}

Json stopped(Coordinated& cluster, const Record& /*record*/) {
  // Both have a call, so that this one is missed.
  static_cast<void>(schedule_waiting(cluster, 2));
  cluster.begun().await(2);
  cluster.processes().signal(kFirstWorker, SIGSTOP);
  cluster.open_gate();
  static_cast<void>(schedule_adds(cluster, 10));
  const Json joined = join_without_workers(cluster);
  Json outcome{{"join_within_8s_while_stopped", joined[0]}, {"v_while_stopped", value_of(cluster.counter)}};
  cluster.processes().signal(kFirstWorker, SIGCONT);
  cluster.processes().wait(kFirstWorker);
  outcome["v_after_continue"] = value_of(cluster.counter);
  return outcome;
}

}  // namespace

int add_here(const InputContext& worker, const Variable& counter) {
  counter.assign_add(std::int64_t{1});
  return worker.input_pipeline_id;
}

Json told(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return {"raised", class_of(error)};
  }
  return {"ok", nullptr};
}

std::vector<Family> lost_worker_families() {
  const Json once{{"begun_3s_after_kill", 0}, {"begun", 4}};
  const Json once_restarted{{"begun_15s_after_restart", 0}, {"begun", 4}};
  const Json both_ran{{"workers_that_ran_after_restart", {0, 1}}};
  return {
      fault("*/one_worker_kill_no_restart", 1, without_worker),
      fault("*/dataset_create_during_restart", 2, made_during_restart,
            {instead("*/dataset_create_during_restart", kNoWait, {{"iter_blocked_over_1s", false}})}),
      fault("*/error_and_kill", 2, error_and_loss,
            {instead("*/error_and_kill", kFirstAgain, {{"waiting", true}})}),
      fault("*/result_kept", 2, results_without_workers),
      fault("*/worker_kill_idle_restart*", 2, killed_while_idle,
            {instead("*/worker_kill_idle_restart*", kTakesPart, both_ran)}),
      fault("*/worker_kill_inflight_restart", 2, killed_in_flight,
            {instead("*/worker_kill_inflight_restart", kOnce, once_restarted)}),
      fault("*/worker_kill_inflight*", 2, killed_in_flight,
            {instead("*/worker_kill_inflight*", kOnce, once)}),
      fault("*/worker_sigterm", 2, ended_by_signal),
      fault("*/worker_stop_cont", 2, stopped,
            {instead("*/worker_stop_cont", kSilent,
                     {{"join_within_8s_while_stopped", "ok"}, {"v_while_stopped", 10}})}),
  };
}

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
  earlier.reserve(5);
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
  waiting.reserve(4);
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
