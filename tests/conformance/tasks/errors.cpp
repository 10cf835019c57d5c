// Functions that fail: who is told, and what becomes of the others.
#include <chrono>
#include <set>
#include <thread>

#include <cohort/input/files/text_line.h>

#include "../scenarios/common.h"
#include "coordinated.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kAlike = "what is cancelled says so in one way";
constexpr std::string_view kAtOnce = "an error is known when its call has ended";

// ---- functions

/// Fails when the test lets it.
std::int64_t fail_later(int pass) {
  await_signal(pass);
  return fail();
}

std::int64_t fail_together(const Variable& gate, int begun, int pass) {
  meet(gate, begun, pass);
  return fail();
}

/// Long enough for its worker to be given no further calls ahead.
std::int64_t hold(const Variable& gate, int begun, int pass) {
  meet(gate, begun, pass);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
  while (std::chrono::steady_clock::now() < end) {
  }
  return 8;
}

// ---- who takes the error

/// `error_join_ok3_after4_held`
struct ErrorLine {
  std::string taker;
  int succeeding = 0;
  int later = 0;
  bool is_held = false;

  explicit ErrorLine(const std::string& id) {
    const std::size_t begin = id.rfind("/error_") + 7;
    const std::size_t ok = id.find("_ok", begin);
    taker = id.substr(begin, ok - begin);
    succeeding = std::stoi(id.substr(ok + 3));
    later = std::stoi(id.substr(id.find("_after") + 6));
    is_held = id.ends_with("_held");
  }
};

void await_end(const RemoteValue<std::int64_t>& value) {
  while (!value.is_ready()) std::this_thread::yield();
}

Json outcome_of_value(const RemoteValue<std::int64_t>& value) {
  return outcome_of([&] { return Json(value.fetch()); });
}
Json name_of_failure(const RemoteValue<std::int64_t>& value) {
  return name_or_value([&] { return Json(value.fetch()); });
}

/// What the one sees who is first to ask.
void take_error(const std::string& taker, const Coordinated& cluster,
                const RemoteValue<std::int64_t>& failing, Json& outcome) {
  const ClusterCoordinator& coordinator = cluster.coordinator();
  const auto done = [&] { return Json(coordinator.done()); };
  if (taker == "join") outcome["raised"] = outcome_of_join(coordinator);
  if (taker == "done") outcome["raised"] = outcome_of(done);
  if (taker == "schedule")
    outcome["raised"] = outcome_of([&] { return Json(cluster.schedule_add(1).fetch()); });
  if (taker == "fetch") {
    outcome["fetch_failed"] = outcome_of_value(failing);
    outcome["then_join"] = outcome_of_join(coordinator);
  }
  if (taker == "fetch_twice_then_done") {
    outcome["fetch_failed"] = {name_of_failure(failing), name_of_failure(failing)};
    outcome["then_done"] = name_or_value(done);
  }
}

Json each_once(const std::vector<RemoteValue<std::int64_t>>& values) {
  std::set<Json> outcomes;
  for (const auto& value : values) outcomes.insert(outcome_of_value(value));
  return Json(outcomes);
}

Json taken_error(Coordinated& cluster, const Record& record) {
  const ErrorLine line(record.id);
  const ClusterCoordinator& coordinator = cluster.coordinator();
  std::set<std::string> before;
  for (int i = 0; i < line.succeeding; ++i) before.insert(std::to_string(cluster.schedule_add(1).fetch()));
  std::vector<RemoteValue<std::int64_t>> held;
  if (line.is_held) {
    held.push_back(cluster.schedule_waiting(0));
    cluster.begun().await();
  }
  const auto failing = coordinator.schedule<fail_later>(cluster.pass().input());
  std::vector<RemoteValue<std::int64_t>> later;
  later.reserve(static_cast<std::size_t>(line.later));
  for (int i = 0; i < line.later; ++i) later.push_back(cluster.schedule_waiting(i));
  cluster.pass().give();
  await_end(failing);
  Json outcome;
  take_error(line.taker, cluster, failing, outcome);
  outcome["second_join"] = outcome_of_join(coordinator);
  outcome["done"] = coordinator.done();
  outcome["ok_before"] = before;
  outcome["failed"] = {name_of_failure(failing), name_or_value([&] { return Json(failing.get()); }),
                       name_or_value([&] { return Json(coordinator.fetch(failing)); })};
  outcome["held_inflight"] = each_once(held);
  outcome["later"] = each_once(later);
  outcome["later_count"] = later.size();
  outcome["v"] = value_of(cluster.counter);
  outcome["usable_after"] = cluster.schedule_add(1).fetch();
  outcome["join_after"] = outcome_of_join(coordinator);
  // Some of the later ones may have begun.
  cluster.begun().take_all();
  return outcome;
}

Json with_one_text(const Record& record) {
  Json outcome = record.outcome;
  outcome["later"] = Json::array({an_error()});
  return outcome;
}

// ---- kinds of errors

template <auto kFunction>
Family kind(Coordinated& cluster, std::string_view pattern) {
  return line(cluster, pattern, [](Coordinated& c) {
    const auto value = c.coordinator().schedule<kFunction>(c.numbers);
    const Json joined = outcome_of_join(c.coordinator());
    const Json fetched = outcome_of([&] {
      value.fetch();
      return Json(nullptr);
    });
    return Json{{"join", joined}, {"fetch", fetched}, {"join2", outcome_of_join(c.coordinator())}};
  });
}

void require_other_value(const Variable& numbers) {
  if (numbers.read().span<float>()[0] != -5) throw InvalidArgument("another value is expected");
}
void look_up_too_far(const Variable& numbers) {
  static_cast<void>(embedding_lookup(numbers, Tensor::from({10})));
}
void read_missing_file(const Variable& /*numbers*/) {
  for (const std::string& text : text_line_dataset({"/nonexistent"})) static_cast<void>(text);
}
void assign_other_shape(const Variable& numbers) { numbers.assign(vector({1, 1})); }
void reshape_wrongly(const Variable& /*numbers*/) {
  static_cast<void>(vector({0, 1, 2, 3, 4}).reshape({2, 2}));
}
void throw_of_standard(const Variable& /*numbers*/) { throw std::out_of_range("the function's own"); }
void read_no_number(const Variable& /*numbers*/) { static_cast<void>(std::stoi("x")); }

// ---- several functions

Json two_errors(Coordinated& cluster) {
  const auto schedule = [&] {
    return cluster.coordinator().schedule<fail_together>(cluster.gate, cluster.begun().output(),
                                                         cluster.pass().input());
  };
  const auto a = schedule();
  const auto b = schedule();
  cluster.let_meet(2);
  cluster.pass().give(2);
  await_end(a);
  await_end(b);
  const auto join = [&] {
    return name_or_value([&] {
      cluster.coordinator().join();
      return Json(nullptr);
    });
  };
  Json outcome{join()};
  outcome.push_back(join());
  outcome.push_back(name_of_failure(a));
  outcome.push_back(name_of_failure(b));
  return outcome;
}

/// One worker fails and the other is held while the rest is scheduled, so that some of it is cancelled.
Json error_among_many(Coordinated& cluster) {
  const ClusterCoordinator& coordinator = cluster.coordinator();
  std::vector<RemoteValue<std::int64_t>> others;
  bool first_ones_end = true;
  for (int i = 0; i < 30; ++i) {
    others.push_back(cluster.schedule_add(1));
    first_ones_end = first_ones_end && others.back().fetch() == 2;
  }
  const auto failing =
      coordinator.schedule<fail_together>(cluster.gate, cluster.begun().output(), cluster.pass().input());
  static_cast<void>(
      coordinator.schedule<hold>(cluster.gate, cluster.begun().output(), cluster.pass_of_held().input()));
  cluster.let_meet(2);
  for (int i = 0; i < 200; ++i) others.push_back(cluster.schedule_add(1));
  cluster.pass().give();
  await_end(failing);
  cluster.pass_of_held().give();
  Json raised_by = Json::array();
  if (outcome_of_join(coordinator).is_object()) raised_by.push_back("join");
  std::set<std::string> classes;
  int succeeded = 0;
  for (const auto& value : others) {
    const Json outcome = name_of_failure(value);
    succeeded += outcome.is_number() ? 1 : 0;
    classes.insert(outcome.is_number() ? "ok" : outcome.get<std::string>());
  }
  return {{"classes_of_other_fetches", classes},
          {"v_equals_number_of_ok_or_more", value_of(cluster.counter) >= succeeded},
          {"first_30_ok", first_ones_end},
          {"raised_by", raised_by}};
}

/// Both workers are held. The one that is free first fails, before the other one is free.
Json queued_behind_failure(Coordinated& cluster) {
  const ClusterCoordinator& coordinator = cluster.coordinator();
  const auto schedule = [&](const Signals& pass) {
    return coordinator.schedule<hold>(cluster.gate, cluster.begun().output(), pass.input());
  };
  std::vector<RemoteValue<std::int64_t>> held;
  // Twice: only after a long call does a worker get one call at a time.
  for (int round = 0; round < 2; ++round) {
    cluster.reset();
    held = {schedule(cluster.pass()), schedule(cluster.pass_of_held())};
    cluster.let_meet(2);
    if (round > 0) break;
    cluster.pass().give();
    cluster.pass_of_held().give();
    coordinator.join();
  }
  const auto failing = cluster.schedule_fail();
  const auto behind = cluster.schedule_add(1);
  cluster.pass().give();
  await_end(failing);
  cluster.pass_of_held().give();
  const Json joined = outcome_of_join(coordinator);
  return {{"join", joined},
          {"queued_behind", outcome_of_value(behind)},
          {"held", each_once(held)},
          {"v", value_of(cluster.counter)}};
}

}  // namespace

std::vector<Family> error_families(Coordinated& cluster) {
  std::vector<Family> all{
      kind<require_other_value>(cluster, "*/error_class_assert"),
      kind<look_up_too_far>(cluster, "*/error_class_gather_oob"),
      kind<read_missing_file>(cluster, "*/error_class_read_missing_file"),
      kind<assign_other_shape>(cluster, "*/error_class_scatter_shape"),
      kind<reshape_wrongly>(cluster, "*/error_class_reshape"),
      kind<throw_of_standard>(cluster, "*/error_class_py_function"),
      kind<read_no_number>(cluster, "*/error_class_string_to_number"),
      line(cluster, "*/two_errors", two_errors),
      line(cluster, "*/error_among_many", error_among_many),
      line(cluster, "*/queued_behind_failure", queued_behind_failure),
  };
  all.push_back({{"*/error_*_ok*_after*"},
                 [&cluster](const Record& record) {
                   cluster.reset();
                   return taken_error(cluster, record);
                 },
                 {{"*/ps_w1_p1/error_done_ok3_after4", kAtOnce,
                   [](const Record& record) {
                     Json outcome = with_one_text(record);
                     outcome["raised"] = an_error();
                     outcome["second_join"] = nullptr;
                     return outcome;
                   }},
                  {"*/error_done_ok3_after4", kAlike, with_one_text},
                  {"*/error_schedule_ok3_after4", kAlike, with_one_text},
                  {"*/error_fetch_ok3_after4", kAlike, with_one_text},
                  {"*/error_*_after3_held", kAlike, with_one_text}}});
  return all;
}

}  // namespace cohort::conformance
