// Datasets: how batches of distributed ones are split, and what is known of those without a strategy.
#include "input.h"

#include <numeric>

namespace cohort::conformance {
namespace {

// Datasets that are distributed: how batches are split, and what else there is to ask of them.

struct Sizes {
  std::int64_t count;
  std::int64_t batch;
};

/// Whether slices of ceil(b / 3) rows, the original's, are not nearly equal for three replicas.
bool is_unbalanced(std::int64_t rows) {
  const std::int64_t slice = (rows + 2) / 3;
  return std::max<std::int64_t>(rows - 2 * slice, 0) != rows / 3;
}

/// Lines such as `range10_batch4_keep`.
void add_ranges(std::vector<Scenario>& scenarios) {
  for (const auto& [count, batch] :
       {Sizes{9, 2}, Sizes{10, 4}, Sizes{10, 3}, Sizes{7, 4}, Sizes{8, 8}, Sizes{12, 6}, Sizes{1, 4},
        Sizes{0, 4}, Sizes{5, 1}, Sizes{3, 3}, Sizes{13, 5}}) {
    for (const bool drop : {false, true}) {
      std::vector<Difference> differences;
      if ((count >= batch && is_unbalanced(batch)) || (!drop && is_unbalanced(count % batch)))
        differences = {{"mirrored3", kBalanced, [=, count = count, batch = batch](const Layout& l) {
                          return balanced_steps(l, count, batch, drop);
                        }}};
      scenarios.push_back({fmt::format("input/range{}_batch{}_{}", count, batch, drop ? "drop" : "keep"),
                           [=, count = count, batch = batch](const Layout& l) {
                             return distributed(l, numbers(count).batch(batch, drop));
                           },
                           differences});
    }
  }
}

/// Vectors of 1, 2, ... elements of their length, made as long as the longest of each two.
Dataset<Tensor> padded_pairs() {
  return Dataset<Tensor>::from_generator([] {
    return [length = 1]() mutable -> std::optional<Tensor> {
      if (length > 5) return std::nullopt;
      const int longest = std::min(length + 1, 5);
      std::vector<double> values;
      for (int row = length; row <= longest; ++row) {
        for (int i = 0; i < longest; ++i) values.push_back(i < row ? row : 0);
      }
      const std::int64_t rows = longest - length + 1;
      length += 2;
      return tensor(std::move(values), {rows, longest});
    };
  });
}

using Named = std::map<std::string, Tensor>;

Dataset<std::tuple<Named, Tensor>> named_pairs() {
  return numbers(6)
      .map([](const Tensor& row) {
        const auto x = static_cast<double>(row.item<std::int64_t>());
        return std::tuple(Named{{"a", number(x)}, {"b", number(-x)}}, number(10 * x));
      })
      .batch(4);
}

Tensor plus_100(const Tensor& batch) {
  Tensor result = batch.clone();
  for (std::int64_t& element : result.span<std::int64_t>()) element += 100;
  return result;
}

void add_transformed(std::vector<Scenario>& scenarios) {
  for (const bool drop : {false, true}) {
    scenarios.push_back(
        {fmt::format("input/map_after_batch{}", drop ? "_drop" : ""),
         [=](const Layout& l) { return distributed(l, numbers(10).batch(4, drop).map(plus_100)); },
         {{"mirrored3", kBalanced, [=](const Layout&) {
             Json steps{{{100, 101}, {102}, {103}}, {{104, 105}, {106}, {107}}};
             if (!drop) steps.push_back({{108}, {109}, Json::array()});
             steps.push_back("END");
             return steps;
           }}}});
  }
  scenarios.push_back(
      {"input/repeat_after_batch",
       [](const Layout& l) { return distributed(l, numbers(5).batch(4).repeat(2)); },
       {{"mirrored3", kBalanced, [](const Layout&) {
           const Json none = Json::array();
           return Json{{{0, 1}, {2}, {3}}, {{4}, none, none}, {{0, 1}, {2}, {3}}, {{4}, none, none}, "END"};
         }}}});
  scenarios.push_back(
      {"input/repeat_before_batch",
       [](const Layout& l) { return distributed(l, numbers(5).repeat(2).batch(4)); },
       {{"mirrored3", kBalanced, [](const Layout&) {
           return Json{{{0, 1}, {2}, {3}}, {{4, 0}, {1}, {2}}, {{3}, {4}, Json::array()}, "END"};
         }}}});
  scenarios.push_back({"input/take",
                       [](const Layout& l) { return distributed(l, numbers(20).batch(4).take(2)); },
                       {{"mirrored3", kBalanced, [](const Layout& l) { return balanced_steps(l, 8, 4); }}}});
  scenarios.push_back({"input/padded_batch", [](const Layout& l) { return distributed(l, padded_pairs()); }});
  scenarios.push_back({"input/tuple_dict",
                       [](const Layout& l) { return distributed(l, named_pairs()); },
                       {{"mirrored3", kBalanced, [](const Layout&) {
                           const auto part = [](const Json& a, const Json& b, const Json& label) {
                             return Json::array({Json{{"a", a}, {"b", b}}, label});
                           };
                           const Json none = Json::array();
                           return Json{
                               {part({0, 1}, {0, -1}, {0, 10}), part({2}, {-2}, {20}), part({3}, {-3}, {30})},
                               {part({4}, {-4}, {40}), part({5}, {-5}, {50}), part(none, none, none)},
                               "END"};
                         }}}});
  scenarios.push_back({"input/from_tensor_slices_2d", [](const Layout& l) {
                         std::vector<double> values(10);
                         std::iota(values.begin(), values.end(), 0);
                         const Tensor matrix = tensor(std::move(values), {5, 2});
                         return distributed(l, Dataset<Tensor>::from_tensor_slices(matrix).batch(3));
                       }});
  scenarios.push_back({"input/filter",
                       [](const Layout& l) {
                         const auto is_even = [](const Tensor& row) {
                           return row.item<std::int64_t>() % 2 == 0;
                         };
                         return distributed(l, numbers(10).filter(is_even).batch(4));
                       },
                       {{"mirrored3", kBalanced, [](const Layout&) {
                           return Json{{{0, 2}, {4}, {6}}, {{8}, Json::array(), Json::array()}, "END"};
                         }}}});
  scenarios.push_back({"input/unbatched", [](const Layout& l) { return distributed(l, numbers(5)); }});
  scenarios.push_back(
      {"input/unbatched_vector",
       [](const Layout& l) {
         std::vector<double> values(12);
         std::iota(values.begin(), values.end(), 0);
         return distributed(l, Dataset<Tensor>::from_tensor_slices(tensor(std::move(values), {3, 4})));
       },
       {{"mirrored3", kBalanced, [](const Layout& l) { return balanced_steps(l, 12, 4); }}}});
  for (const auto& [name, policy] :
       {std::pair("AUTO", AutoShardPolicy::kAuto), std::pair("OFF", AutoShardPolicy::kOff),
        std::pair("FILE", AutoShardPolicy::kFile), std::pair("DATA", AutoShardPolicy::kData),
        std::pair("HINT", AutoShardPolicy::kHint)}) {
    std::vector<Difference> differences;
    if (policy == AutoShardPolicy::kAuto || policy == AutoShardPolicy::kData)
      differences = {{"mirrored3", kBalanced, [](const Layout& l) { return balanced_steps(l, 8, 4); }}};
    scenarios.push_back({fmt::format("input/shard_{}", name),
                         [policy = policy](const Layout& l) {
                           return distributed(l, numbers(8).batch(4), {.auto_shard_policy = policy});
                         },
                         differences});
  }
}

/// What the loop of a program makes of each step of `dataset`.
Json each_step(const Layout& l, const Dataset<Tensor>& dataset,
               const std::function<Json(const PerReplica<Tensor>&)>& step) {
  Json results = Json::array();
  for (const auto& batches : l.strategy().distribute_dataset(dataset)) results.push_back(step(batches));
  return results;
}

/// 5, 6, 7 as floats, in one batch of 4 at most.
Dataset<Tensor> five_to_seven() { return Dataset<Tensor>::from_tensor_slices(vector({5, 6, 7})).batch(4); }

double sum_of(const Tensor& part) {
  const Tensor wide = part.cast(DType::kFloat64);
  double sum = 0;
  for (const double element : wide.span<double>()) sum += element;
  return sum;
}

void add_loops(std::vector<Scenario>& scenarios) {
  scenarios.push_back({"input/reduce_sum_of_steps", [](const Layout& l) {
                         return each_step(l, numbers(9).batch(4), [&](const PerReplica<Tensor>& batches) {
                           return Json(
                               l.strategy().reduce(ReduceOp::kSum, l.strategy().run(sum_of, batches)));
                         });
                       }});
  scenarios.push_back({"input/reduce_mean_axis0", [](const Layout& l) {
                         return each_step(l, five_to_seven(), [&](const PerReplica<Tensor>& batches) {
                           return show(l.strategy().reduce(ReduceOp::kMean, batches, 0));
                         });
                       }});
  scenarios.push_back(
      {"input/replica_mean", [](const Layout& l) {
         return each_step(l, five_to_seven(), [&](const PerReplica<Tensor>& batches) {
           return show(l.strategy().run(
               [](const Tensor& mine) { return sum_of(mine) / static_cast<double>(mine.elements()); },
               batches));
         });
       }});
  scenarios.push_back({"input/enumerate_tf_function", [](const Layout& l) {
                         const auto add = [&](double sum, const PerReplica<Tensor>& batches) {
                           return sum +
                                  l.strategy().reduce(ReduceOp::kSum, l.strategy().run(sum_of, batches));
                         };
                         return Json(l.strategy().distribute_dataset(numbers(9).batch(4)).reduce(0.0, add));
                       }});
  scenarios.push_back(
      {"input/reiterate",
       [](const Layout& l) {
         const auto dataset = l.strategy().distribute_dataset(numbers(4).batch(4));
         Json passes = Json::array();
         for (int pass = 0; pass < 2; ++pass) passes.push_back(show_pass(dataset));
         return passes;
       },
       {{"mirrored3", kBalanced, [](const Layout& l) { return Json(2, balanced_steps(l, 4, 4)); }}}});
  scenarios.push_back({"input/get_next_end", [](const Layout& l) {
                         auto steps = l.strategy().distribute_dataset(numbers(4).batch(4)).iterate();
                         static_cast<void>(steps.get_next());
                         return show_step(steps.get_next());
                       }});
  scenarios.push_back({"input/get_value_empty", [](const Layout& l) {
                         auto steps = l.strategy().distribute_dataset(numbers(0).batch(4)).iterate();
                         return show_step(steps.get_next_as_optional().value());
                       }});
}

void add_specs(std::vector<Scenario>& scenarios) {
  scenarios.push_back({"input/element_spec", [](const Layout& l) {
                         Json specs = Json::array();
                         for (const bool drop : {false, true})
                           specs.push_back(
                               spec_of(l, l.strategy().distribute_dataset(numbers(10).batch(4, drop))));
                         return specs;
                       }});
  scenarios.push_back({"input/len", [](const Layout& l) {
                         return Json(
                             l.strategy().distribute_dataset(numbers(10).batch(4)).cardinality().count());
                       }});
}

}  // namespace

std::vector<Scenario> input_scenarios() {
  std::vector<Scenario> scenarios;
  add_ranges(scenarios);
  add_transformed(scenarios);
  add_loops(scenarios);
  add_specs(scenarios);
  return scenarios;
}

namespace {

// What is known of datasets without a strategy: batch sizes, shards, contexts.

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
