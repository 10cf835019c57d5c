// Datasets that functions make, and the options of distribution.
#include "input.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kNoDataLost = "data of some replicas is not dropped";
constexpr std::string_view kNoLeak = "options of one dataset change no other";

Json show_context(const InputContext& context) {
  return {context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync};
}

Json from_function(const Layout& l, const std::function<Dataset<Tensor>(const InputContext&)>& function,
                   const InputOptions& options = {}) {
  return show_pass(l.strategy().distribute_datasets_from_function(function, options));
}

/// The steps of the pipelines `make` makes, and the contexts that it was called with.
Json with_contexts(const Layout& l, const std::function<Dataset<Tensor>(const InputContext&)>& make,
                   const InputOptions& options = {}) {
  Json contexts = Json::array();
  const Json steps = from_function(
      l,
      [&](const InputContext& context) {
        contexts.push_back(show_context(context));
        return make(context);
      },
      options);
  return {steps, contexts};
}

constexpr InputOptions kPerReplica{.replication_mode = InputReplicationMode::kPerReplica};

/// (1, 2, 3) times the pipeline's number from 1 on, as scalars.
Dataset<Tensor> multiples(const InputContext& context) {
  const std::int64_t factor = context.input_pipeline_id + 1;
  return Dataset<Tensor>::range(factor, 4 * factor, factor);
}

void add_functions(std::vector<Scenario>& scenarios) {
  scenarios.push_back({"input/from_function",
                       [](const Layout& l) {
                         return with_contexts(l, [](const InputContext&) { return numbers(9).batch(2); });
                       },
                       {{"central2", kNoDataLost, [](const Layout&) {
                           const Json steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8}, Json::array()}, "END"};
                           return Json{steps, Json::array({{1, 0, 2}})};
                         }}}});
  scenarios.push_back({"input/from_function_drop", [](const Layout& l) {
                         return from_function(l,
                                              [](const InputContext&) { return numbers(9).batch(2, true); });
                       }});
  scenarios.push_back({"input/from_function_unbatched", [](const Layout& l) {
                         return from_function(l, [](const InputContext&) { return numbers(10); });
                       }});
  scenarios.push_back(
      {"input/from_function_shard", [](const Layout& l) {
         return from_function(l, [](const InputContext& context) {
           return numbers(12).shard({context.num_input_pipelines, context.input_pipeline_id}).batch(2);
         });
       }});
  scenarios.push_back({"input/get_per_replica_batch_size", [](const Layout& l) {
                         Json sizes = Json::array();
                         static_cast<void>(
                             l.strategy().distribute_datasets_from_function([&](const InputContext& context) {
                               sizes.push_back(context.per_replica_batch_size(12));
                               return numbers(12).batch(context.per_replica_batch_size(12));
                             }));
                         return sizes;
                       }});
  scenarios.push_back({"input/opt_per_replica",
                       [](const Layout& l) { return with_contexts(l, multiples, kPerReplica); },
                       {{"central2", kSameOptions,
                         [](const Layout&) {
                           return Json{{{1, 2}, {2, 4}, {3, 6}, "END"}, {{2, 0, 2}, {2, 1, 2}}};
                         }},
                        {"onedevice1", kSameOptions, [](const Layout&) {
                           const Json steps{Json{1}, Json{2}, Json{3}, "END"};
                           return Json{steps, Json::array({{1, 0, 1}})};
                         }}}});
}

/// OFF and default datasets, and contexts, before and after a dataset with a pipeline per replica.
Json around_a_per_replica_dataset(const Layout& l) {
  const auto off = [&] {
    return distributed(l, numbers(8).batch(4), {.auto_shard_policy = AutoShardPolicy::kOff});
  };
  Json result{{"OFF_before", off()}};
  static_cast<void>(from_function(l, multiples, kPerReplica));
  result["OFF_after"] = off();
  result["default_range9_batch2_after"] = distributed(l, numbers(9).batch(2));
  Json contexts = Json::array();
  static_cast<void>(l.strategy().distribute_datasets_from_function([&](const InputContext& context) {
    contexts.push_back({context.num_input_pipelines, context.input_pipeline_id});
    return numbers(1).batch(1);
  }));
  result["PER_WORKER_contexts_after"] = contexts;
  return result;
}

/// The devices of the first step's parts.
Json devices_of_parts(const Layout& l, const InputOptions& options) {
  auto steps = l.strategy().distribute_dataset(numbers(4).batch(4), {.input = options}).iterate();
  Json devices = Json::array();
  const PerReplica<Tensor> step = steps.get_next();
  for (const Tensor& part : step.components()) devices.push_back(device_name(l, part.device()));
  return devices;
}

void add_options(std::vector<Scenario>& scenarios) {
  scenarios.push_back({"input/opt_per_replica_state_leak",
                       around_a_per_replica_dataset,
                       {{"mirrored2 mirrored3 central2", kNoLeak, [](const Layout& l) {
                           return Json{{"OFF_before", balanced_steps(l, 8, 4)},
                                       {"OFF_after", balanced_steps(l, 8, 4)},
                                       {"default_range9_batch2_after", balanced_steps(l, 9, 2)},
                                       {"PER_WORKER_contexts_after", {{1, 0}}}};
                         }}}});
  scenarios.push_back(
      {"input/opt_per_replica_dataset",
       [](const Layout& l) { return distributed(l, numbers(4).batch(2), {.input = kPerReplica}); },
       {{"default1", kSameOptions, [](const Layout&) { return an_error(); }}}});
  for (const auto& [name, options] :
       {std::pair("fetch", InputOptions{.replication_mode = InputReplicationMode::kPerReplica,
                           .place_dataset_on_device = true}),
        std::pair("per_worker", InputOptions{.fetch_to_device = false, .place_dataset_on_device = true})}) {
    scenarios.push_back({fmt::format("input/opt_place_{}", name),
                         [options = options](const Layout& l) {
                           return from_function(
                               l, [](const InputContext&) { return numbers(4); }, options);
                         },
                         {{"default1 onedevice1", kSameOptions, [](const Layout&) { return an_error(); }}}});
  }
  scenarios.push_back({"input/opt_no_fetch",
                       [](const Layout& l) { return devices_of_parts(l, {.fetch_to_device = false}); },
                       {{"central2", kSameOptions,
                         [](const Layout& l) { return Json(2, device_name(l, Device::cpu(0))); }}}});
  scenarios.push_back({"input/opt_buffer0",
                       [](const Layout& l) {
                         return distributed(l, numbers(6).batch(4),
                                            {.input = {.per_replica_buffer_size = 0}});
                       },
                       {{"central2", kSameOptions, [](const Layout& l) { return balanced_steps(l, 6, 4); }},
                        {"mirrored3", kBalanced, [](const Layout& l) { return balanced_steps(l, 6, 4); }}}});
}

}  // namespace

std::vector<Scenario> input_function_scenarios() {
  std::vector<Scenario> scenarios;
  add_functions(scenarios);
  add_options(scenarios);
  return scenarios;
}

}  // namespace cohort::conformance
