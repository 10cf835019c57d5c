// Values that each worker has of its own: datasets, above all.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include <cohort/input/distribute.h>

#include "../scenarios/common.h"
#include "coordinated.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kContext = "an InputContext tells the worker's place";
constexpr std::string_view kAnyValue = "a worker keeps values of any type";
constexpr std::string_view kOwnArgument = "a PerWorker is an argument of its own";

/// One worker's pass over its dataset.
struct Elements {
  int worker = 0;
  std::function<std::optional<Tensor>()> next;
};

Elements elements_of(const InputContext& worker, const Dataset<Tensor>& dataset) {
  auto current = std::make_shared<Dataset<Tensor>::Iterator>(dataset.begin());
  return {worker.input_pipeline_id, [current, started = false]() mutable -> std::optional<Tensor> {
            if (*current == std::default_sentinel) return std::nullopt;
            if (started) ++*current;
            started = true;
            if (*current == std::default_sentinel) return std::nullopt;
            return **current;
          }};
}

Elements elements_of(const InputContext& worker, const DistributedDataset<Tensor>& dataset) {
  auto steps = std::make_shared<DistributedIterator<Tensor>>(dataset.iterate());
  return {worker.input_pipeline_id, [steps]() -> std::optional<Tensor> {
            const auto step = steps->get_next_as_optional();
            if (!step) return std::nullopt;
            return step->components().front();
          }};
}

Elements hundred(const InputContext& worker) { return elements_of(worker, Dataset<Tensor>::range(100)); }
Elements batches(const InputContext& worker) {
  return elements_of(worker, Dataset<Tensor>::range(100).batch(2));
}
Elements repeated(const InputContext& worker) {
  return elements_of(worker, Dataset<Tensor>::range(3).repeat());
}
Elements from_function(const InputContext& worker) {
  return elements_of(worker, get_strategy().distribute_datasets_from_function(
                                 [](const InputContext&) { return Dataset<Tensor>::range(100); }));
}
Elements distributed(const InputContext& worker) {
  return elements_of(worker, get_strategy().distribute_dataset(Dataset<Tensor>::range(100).batch(2)));
}
Elements range_of_two(const InputContext& worker) { return elements_of(worker, Dataset<Tensor>::range(2)); }
Elements own_share(const InputContext& worker) {
  return elements_of(worker, Dataset<Tensor>::range(10).shard(
                                 {.count = worker.num_input_pipelines, .index = worker.input_pipeline_id}));
}
Elements beside_a_variable(const InputContext& worker) {
  const Variable own({.initial_value = number(1)});
  return elements_of(worker, Dataset<Tensor>::range(3));
}

using Taken = std::tuple<int, Tensor>;

Taken take(Elements& elements) {
  std::optional<Tensor> element = elements.next();
  if (!element) throw OutOfRange("the dataset of worker {} has ended", elements.worker);
  return {elements.worker, *element};
}
Taken take_together(Elements& elements, const Variable& gate, int begun, int pass) {
  meet(gate, begun, pass);
  return take(elements);
}

std::int64_t sum(Elements& elements) {
  std::int64_t result = 0;
  while (const auto element = elements.next()) result += element->item<std::int64_t>();
  return result;
}
std::tuple<int, std::int64_t> sum_together(Elements& elements, const Variable& gate, int begun, int pass) {
  meet(gate, begun, pass);
  return {elements.worker, sum(elements)};
}

/// One call on each worker.
template <auto kFunction, class T>
auto on_each_worker(Coordinated& cluster, const PerWorker<T>& values) {
  cluster.gate.assign(std::int64_t{0});
  const auto schedule = [&] {
    return cluster.coordinator().schedule<kFunction>(values, cluster.gate, cluster.begun().output(),
                                                     cluster.pass().input());
  };
  std::vector<decltype(schedule())> calls;
  calls.reserve(static_cast<std::size_t>(cluster.workers()));
  for (int i = 0; i < cluster.workers(); ++i) calls.push_back(schedule());
  cluster.let_meet(cluster.workers());
  cluster.pass().give(cluster.workers());
  return cluster.coordinator().fetch(calls);
}

template <auto kMake>
Json twelve_taken(Coordinated& cluster, const Record& record) {
  const auto elements = cluster.coordinator().create_per_worker<kMake>();
  std::vector<Taken> taken = on_each_worker<take_together>(cluster, elements);
  std::vector<RemoteValue<Taken>> calls;
  for (int i = cluster.workers(); i < 12; ++i)
    calls.push_back(cluster.coordinator().schedule<take>(elements));
  for (Taken& one : cluster.coordinator().fetch(calls)) taken.push_back(std::move(one));
  std::map<int, std::vector<Json>> values;
  for (const auto& [worker, element] : taken) values[worker].push_back(show(element));
  Json workers = Json::array();
  Json by_worker = Json::object();
  bool from_first = true;
  const Json first = values.at(0).front();
  for (const auto& [worker, elements_of_one] : values) {
    workers.push_back(worker);
    by_worker[std::to_string(worker)] = elements_of_one;
    // The first one that was taken.
    from_first = from_first && elements_of_one.front() == first;
  }
  const bool is_ordered = cluster.workers() == 1;
  return {
      // Names of classes have no counterpart.
      {"class", record.outcome.at("class")},
      {"iterator", record.outcome.at("iterator")},
      {"values_in_schedule_order", is_ordered ? by_worker : Json("not deterministic with several workers")},
      {"workers_seen", workers},
      {"each_worker_starts_at_first_element", from_first},
      {"total", taken.size()}};
}

template <auto kMake>
Family dataset(Coordinated& cluster, std::string_view pattern) {
  return {{pattern}, [&cluster](const Record& record) {
            cluster.reset();
            return twelve_taken<kMake>(cluster, record);
          }};
}

Json sums_of_shares(Coordinated& cluster) {
  auto sums = on_each_worker<sum_together>(cluster, cluster.coordinator().create_per_worker<own_share>());
  std::ranges::sort(sums);
  return sums;
}

std::vector<std::int64_t> described(const InputContext& worker) {
  return {worker.num_input_pipelines, worker.input_pipeline_id, worker.num_replicas_in_sync,
          worker.per_replica_batch_size(8)};
}
std::vector<std::int64_t> tell(const std::vector<std::int64_t>& description, const Variable& gate, int begun,
                               int pass) {
  meet(gate, begun, pass);
  return description;
}

Json input_contexts(Coordinated& cluster) {
  auto contexts = on_each_worker<tell>(cluster, cluster.coordinator().create_per_worker<described>());
  std::ranges::sort(contexts);
  return contexts;
}

Json dataset_that_ends(Coordinated& cluster) {
  const ClusterCoordinator& coordinator = cluster.coordinator();
  const auto elements = coordinator.create_per_worker<range_of_two>();
  std::size_t ended = 0;
  for (int round = 0; round < 2; ++round) ended += on_each_worker<take_together>(cluster, elements).size();
  static_cast<void>(coordinator.schedule<take>(elements));
  Json outcome{{"join", outcome_of_join(coordinator)},
               {"ok_closures", cluster.workers() == 1 ? Json(ended) : Json()},
               {"second_join", outcome_of_join(coordinator)}};
  outcome["one_more"] = name_or_value([&] {
    coordinator.schedule<take>(elements).fetch();
    return Json(nullptr);
  });
  static_cast<void>(outcome_of_join(coordinator));
  const auto again = coordinator.create_per_worker<range_of_two>();
  outcome["new_iterator"] = show(std::get<Tensor>(coordinator.schedule<take>(again).fetch()));
  return outcome;
}

/// What a worker takes first.
template <auto kMake>
Json first_taken(Coordinated& cluster) {
  const auto elements = cluster.coordinator().create_per_worker<kMake>();
  return show(std::get<Tensor>(cluster.coordinator().schedule<take>(elements).fetch()));
}

int five() { return 5; }

Json own_values(Coordinated& cluster, const Record& record) {
  constexpr auto kMake = [](const InputContext& worker) { return 10 * worker.input_pipeline_id + 7; };
  constexpr auto kCheck = [](const InputContext& worker, int value) {
    return value == 10 * worker.input_pipeline_id + 7;
  };
  const auto values = cluster.coordinator().create_per_worker<kMake>();
  std::vector<RemoteValue<bool>> checks;
  checks.reserve(20);
  for (int i = 0; i < 20; ++i) checks.push_back(cluster.coordinator().schedule<kCheck>(values));
  const bool all_own = std::ranges::all_of(checks, [](const auto& check) { return check.fetch(); });
  return {// Names of classes have no counterpart.
          {"class", record.outcome.at("class")},
          {"fetch_collection", record.outcome.at("fetch_collection")},
          {"every closure got its own worker's element", all_own},
          {"nested", nullptr}};
}

}  // namespace

std::vector<Family> per_worker_families(Coordinated& cluster) {
  return {
      dataset<hundred>(cluster, "*/dataset_dataset"),
      dataset<hundred>(cluster, "*/dataset_function"),
      dataset<batches>(cluster, "*/dataset_function_batch"),
      dataset<from_function>(cluster, "*/dataset_distributed_function"),
      dataset<distributed>(cluster, "*/dataset_distributed_dataset"),
      dataset<repeated>(cluster, "*/dataset_dataset_repeat"),
      line(cluster, "*/dataset_shard_by_worker_index", sums_of_shares),
      line(cluster, "*/ps_w1_p1/dataset_input_context", input_contexts),
      line(cluster, "*/ps_w2_p2/dataset_input_context", input_contexts,
           {{"*/dataset_input_context", kContext,
             [](const Record& /*record*/) {
               return Json{{2, 0, 1, 8}, {2, 1, 1, 8}};
             }}}),
      line(cluster, "*/dataset_end", dataset_that_ends),
      line(cluster, "*/dataset_misc_fn_returns_int",
           [](Coordinated& c) {
             constexpr auto kSame = [](int value) { return value; };
             return Json(c.coordinator().schedule<kSame>(c.coordinator().create_per_worker<five>()).fetch());
           },
           {{"*/dataset_misc_fn_returns_int", kAnyValue, [](const Record& /*record*/) { return Json(5); }}}),
      line(cluster, "*/dataset_misc_fn_with_arg", first_taken<hundred>,
           {{"*/dataset_misc_fn_with_arg", kContext, [](const Record& /*record*/) { return Json(0); }}}),
      line(cluster, "*/dataset_misc_fn_variable", first_taken<beside_a_variable>,
           {{"*/dataset_misc_fn_variable", kOwnVariables, [](const Record& /*record*/) { return Json(0); }}}),
      {{"*/per_worker_values"},
       [&cluster](const Record& record) { return own_values(cluster, record); },
       {{"*/per_worker_values", kOwnArgument,
         [](const Record& record) {
           Json outcome = record.outcome;
           outcome["nested"] = nullptr;
           return outcome;
         }}}},
  };
}

}  // namespace cohort::conformance
