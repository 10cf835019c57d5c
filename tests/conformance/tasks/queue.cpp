// In which order functions run, what waits for them, and which strategy and context they see.
#include <atomic>
#include <thread>

#include "../scenarios/common.h"
#include "coordinated.h"

namespace cohort::conformance {
namespace {

// In which order functions run, and what waits for them.

constexpr std::string_view kOnce = "effects take place once";
constexpr std::string_view kJoin = "join stops nobody from scheduling";

std::int64_t append(const Variable& log, const Variable& position, std::int64_t number) {
  position.assign_add(std::int64_t{1});
  const std::vector<std::int64_t> row{value_of(position) - 1};
  log.scatter_update({Tensor::from(std::vector{number}), Tensor::from(row), log.shape()});
  return number;
}

Json in_order(Coordinated& cluster) {
  for (std::int64_t i = 1; i <= 20; ++i)
    cluster.coordinator().schedule<append>(cluster.log, cluster.position, i);
  cluster.coordinator().join();
  return show(cluster.log.read());
}

/// `adds_50`
Json added(Coordinated& cluster, int count) {
  std::vector<RemoteValue<std::int64_t>> results;
  results.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) results.push_back(cluster.schedule_add(1));
  cluster.coordinator().join();
  return {value_of(cluster.counter), cluster.coordinator().fetch(results).size()};
}

/// Four threads schedule 25 each.
Json added_by_threads(Coordinated& cluster) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 25; ++call) static_cast<void>(cluster.schedule_add(1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  cluster.coordinator().join();
  return value_of(cluster.counter);
}

Json fetch_waits(Coordinated& cluster) {
  const auto value = cluster.schedule_waiting(5);
  cluster.begun().await();
  std::atomic<bool> is_open{false};
  bool waited = false;
  std::int64_t result = 0;
  std::thread fetching([&] {
    result = value.fetch();
    waited = is_open.load();
  });
  is_open.store(true);
  cluster.open_gate();
  fetching.join();
  return {result, waited};
}

Json done_and_join(Coordinated& cluster) {
  const ClusterCoordinator& coordinator = cluster.coordinator();
  std::vector<RemoteValue<std::int64_t>> values;
  for (std::int64_t i = 0; i < 4; ++i) values.push_back(cluster.schedule_waiting(i));
  cluster.begun().await(cluster.workers());
  Json outcome{{"done_while_running", coordinator.done()},
               {"begun", value_of(cluster.count_of_begun)},
               {"ended", value_of(cluster.count_of_ended)}};
  std::atomic<bool> is_open{false};
  bool waited = false;
  std::thread joining([&] {
    coordinator.join();
    waited = is_open.load();
  });
  is_open.store(true);
  cluster.open_gate();
  joining.join();
  cluster.begun().await(4 - cluster.workers());
  outcome["join_waited"] = waited;
  outcome["done_after"] = coordinator.done();
  outcome["results"] = coordinator.fetch(values);
  outcome["ended_after"] = value_of(cluster.count_of_ended);
  return outcome;
}

Json scheduled_beside_join(Coordinated& cluster) {
  static_cast<void>(cluster.schedule_waiting(0));
  cluster.begun().await();
  Json log = Json::array();
  std::thread joining([&] { cluster.coordinator().join(); });
  std::thread([&] { static_cast<void>(cluster.schedule_add(1)); }).join();
  log.push_back("schedule returned");
  const Json before = log;
  cluster.open_gate();
  joining.join();
  log.push_back("join returned");
  return {{"before_flag", before}, {"after", log}};
}

}  // namespace

std::vector<Family> queue_families(Coordinated& cluster) {
  return {
      line(cluster, "*/fifo", in_order),
      line(cluster, "*/adds_1", [](Coordinated& c) { return added(c, 1); }),
      line(cluster, "*/adds_50", [](Coordinated& c) { return added(c, 50); }),
      line(cluster, "*/adds_300", [](Coordinated& c) { return added(c, 300); }),
      line(cluster, "*/schedule_threads", added_by_threads),
      line(cluster, "*/fetch_waits", fetch_waits),
      line(cluster, "*/done_join", done_and_join,
           {{"*/done_join", kOnce,
             [](const Record& record) {
               Json outcome = record.outcome;
               outcome["begun"] = 0;
               return outcome;
             }}}),
      line(cluster, "*/join_blocks_schedule", scheduled_beside_join,
           {{"*/join_blocks_schedule", kJoin,
             [](const Record& /*record*/) {
               return Json{{"before_flag", {"schedule returned"}},
                           {"after", {"schedule returned", "join returned"}}};
             }}}),
  };
}

namespace {

// Which strategy and which context a function sees.

constexpr std::string_view kOutside = "a function runs outside any scope";

template <auto kFunction>
Family seen(Coordinated& cluster, std::string_view pattern, std::vector<FamilyDifference> differences = {}) {
  return line(
      cluster, pattern, [](Coordinated& c) { return show(c.coordinator().schedule<kFunction>().fetch()); },
      std::move(differences));
}

FamilyDifference instead(std::string_view pattern, std::string_view why, const Json& outcome) {
  return {pattern, why, [outcome](const Record& /*record*/) { return outcome; }};
}

Tensor in_replica(const std::function<Tensor(ReplicaContext&)>& function) {
  return get_strategy().run([&](ReplicaContext& replica) { return function(replica); }).components().front();
}

Tensor reduced(ReduceOp op) { return get_strategy().reduce(op, PerReplica(std::vector{vector({1, 2})}), 0); }

}  // namespace

std::vector<Family> context_families(Coordinated& cluster) {
  return {
      seen<[] { return get_replica_context() != nullptr; }>(
          cluster, "*/ctx_replica_context", {instead("*/ctx_replica_context", kOutside, true)}),
      seen<[] { return has_strategy(); }>(cluster, "*/ctx_has_strategy",
                                          {instead("*/ctx_has_strategy", kOutside, false)}),
      seen<[] { return in_cross_replica_context(); }>(cluster, "*/ctx_in_cross_replica",
                                                      {instead("*/ctx_in_cross_replica", kOutside, false)}),
      seen<[] {
        return in_replica([](ReplicaContext& r) { return Tensor::scalar(r.replica_id_in_sync_group()); });
      }>(cluster, "*/ctx_run_replica_id"),
      seen<[] {
        return in_replica([](ReplicaContext& r) { return Tensor::scalar(r.num_replicas_in_sync()); });
      }>(cluster, "*/ctx_run_num"),
      seen<[] {
        return in_replica([](ReplicaContext& r) { return r.all_reduce(ReduceOp::kSum, number(3)); });
      }>(cluster, "*/ctx_run_all_reduce_sum"),
      seen<[] {
        return in_replica([](ReplicaContext& r) {
          return r.merge_call(
              [](const Strategy&, const PerReplica<Tensor>& x) {
                return number(x.components().front().item<float>() + 1);
              },
              number(3));
        });
      }>(cluster, "*/ctx_run_merge_call"),
      seen<[] { return reduced(ReduceOp::kSum); }>(cluster, "*/ctx_reduce_sum_axis0"),
      seen<[] { return reduced(ReduceOp::kMean); }>(cluster, "*/ctx_reduce_mean"),
      seen<[] {
        const auto values = get_strategy().run([](ReplicaContext&) { return number(2); });
        return get_strategy().local_results(values);
      }>(cluster, "*/ctx_local_results"),
      seen<[] {
        return in_replica(
            [](ReplicaContext&) { return in_replica([](ReplicaContext&) { return number(1); }); });
      }>(cluster, "*/ctx_nested_run", {instead("*/ctx_nested_run", kDefaultInside, 1.0)}),
      line(cluster, "*/ctx_read_var",
           [](Coordinated& c) {
             constexpr auto kRead = [](const Variable& variable) { return variable.read(); };
             return show(c.coordinator().schedule<kRead>(c.numbers).fetch());
           }),
      line(cluster, "*/ctx_worker_index_in_range",
           [](Coordinated& c) {
             constexpr auto kIndex = [](const InputContext& worker) { return worker.input_pipeline_id; };
             return Json(c.coordinator().schedule<kIndex>().fetch() < c.workers());
           }),
  };
}

}  // namespace cohort::conformance
