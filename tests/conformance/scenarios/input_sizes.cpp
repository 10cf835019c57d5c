// What is known of datasets without a strategy: batch sizes, shards, contexts.
#include "input.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kSizesUnrecorded = "the sizes of cuts";
constexpr std::string_view kMapsAreOpaque = "a function may change the number of rows";

/// What the cuts of every worker must be: worker 0's has the longer ones first, the others' begin at the
/// place of their first replica.
Json expected_cuts(std::int64_t global, int workers, int replicas) {
  const int all = workers * replicas;
  Json by_worker = Json::array();
  for (int worker = 0; worker < workers; ++worker) {
    Json cuts = Json::array();
    for (int cut = 0; cut < all; ++cut) {
      const int place = (cut + worker * replicas) % all;
      cuts.push_back(global / all + (place < global % all ? 1 : 0));
    }
    by_worker.push_back(cuts);
  }
  return by_worker;
}

/// Lines such as `rebatch/G7_W2_R2`; the recorded lists are empty.
void add_cuts(std::vector<Scenario>& scenarios) {
  for (const std::int64_t global : {0, 1, 2, 3, 4, 5, 7, 8, 10, 13}) {
    for (int workers = 1; workers <= 4; ++workers) {
      for (int replicas = 1; replicas <= 4; ++replicas) {
        scenarios.push_back({fmt::format("rebatch/G{}_W{}_R{}", global, workers, replicas),
                             [=](const Layout&) {
                               Json by_worker = Json::array();
                               for (int worker = 0; worker < workers; ++worker)
                                 by_worker.push_back(rebatch_sizes(global, {worker, workers, replicas}));
                               return by_worker;
                             },
                             {{"", kSizesUnrecorded,
                               [=](const Layout&) { return expected_cuts(global, workers, replicas); }}}});
      }
    }
  }
}

template <class Element>
Json batch_size_of(const Dataset<Element>& dataset) {
  const std::optional<cohort::detail::BatchSize> size = dataset.node()->batch_size();
  return size ? size->elements : -1;
}

void add_batch_sizes(std::vector<Scenario>& scenarios) {
  const auto add = [&](std::string_view name, auto make, std::vector<Difference> differences = {}) {
    scenarios.push_back({fmt::format("batchsize/{}", name),
                         [=](const Layout&) { return batch_size_of(make(numbers(20).batch(4))); },
                         std::move(differences)});
  };
  using Batches = Dataset<Tensor>;
  const auto same = [](const Tensor& batch) { return batch; };
  const Difference unknown{"", kMapsAreOpaque, [](const Layout&) { return Json(-1); }};
  add("batch", [](const Batches& batches) { return batches; });
  add("batch_drop", [](const Batches&) { return numbers(20).batch(4, true); });
  add("batch_prefetch", [](const Batches& batches) { return batches.prefetch(2); });
  add("batch_map", [=](const Batches& batches) { return batches.map(same); });
  add("batch_map_drop", [=](const Batches&) { return numbers(20).batch(4, true).map(same); }, {unknown});
  add("batch_take_skip", [](const Batches& batches) { return batches.take(3).skip(1); });
  add("zip_equal", [](const Batches& batches) { return zip(batches, batches); });
  add("zip_unequal", [](const Batches& batches) { return zip(batches, numbers(20).batch(5)); });
  add("concat_equal", [](const Batches& batches) { return batches.concatenate(batches); });
  add("unbatched", [](const Batches&) { return numbers(20); }, {unknown});
  add("batch_filter",
      [](const Batches& batches) { return batches.filter([](const Tensor&) { return true; }); });
  add("batch_batch", [](const Batches&) { return numbers(20).batch(4, true).batch(2); });
  add("batch_unbatch", [](const Batches& batches) { return batches.unbatch(); }, {unknown});
  add("batch_cache", [](const Batches& batches) { return batches.cache(); });
  const auto two = [](const Tensor&) { return numbers(8).batch(4); };
  add("flat_map", [=](const Batches&) { return numbers(2).interleave(two, {.cycle_length = 1}); });
  add("interleave", [=](const Batches&) { return numbers(2).interleave(two, {.cycle_length = 2}); });
}

void add_shards(std::vector<Scenario>& scenarios) {
  for (const Shard shard :
       {Shard{2, 0}, Shard{2, 1}, Shard{3, 2}, Shard{1, 0}, Shard{0, 0}, Shard{2, 2}, Shard{2, -1}}) {
    scenarios.push_back({fmt::format("shard/range5_{}_{}", shard.count, shard.index), [=](const Layout&) {
                           Json elements = Json::array();
                           for (const Tensor& element : numbers(5).shard(shard))
                             elements.push_back(show(element));
                           return elements;
                         }});
  }
}

void add_contexts(std::vector<Scenario>& scenarios) {
  scenarios.push_back(
      {"inputcontext/defaults", [](const Layout&) {
         const InputContext context;
         return Json{context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync};
       }});
  scenarios.push_back({"inputcontext/per_replica_12_6", [](const Layout&) {
                         return Json(InputContext{.num_replicas_in_sync = 6}.per_replica_batch_size(12));
                       }});
  const auto text_of = [](const InputContext& context) {
    std::ostringstream text;
    text << context;
    return Json(text.str());
  };
  scenarios.push_back({"inputcontext/repr",
                       [=](const Layout&) {
                         return text_of({2, 1, 6});
                       },
                       {{"", "names without a module", [](const Layout&) {
                           return Json("InputContext(input pipeline id 1, total: 2)");
                         }}}});
}

}  // namespace

std::vector<Scenario> input_size_scenarios() {
  std::vector<Scenario> scenarios;
  add_cuts(scenarios);
  add_batch_sizes(scenarios);
  add_shards(scenarios);
  add_contexts(scenarios);
  return scenarios;
}

}  // namespace cohort::conformance
