// `ReplicaContext::all_reduce`: its results, its options and how it packs, and the gradients through
// collectives.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/collective/communication_options.h>
#include <cohort/collective/packing.h>

#include "common.h"

namespace cohort::conformance {
namespace {

// `ReplicaContext::all_reduce`.

/// The value of each replica, all-reduced.
template <class Make>
Json reduced(const Layout& l, ReduceOp op, Make make) {
  return show(l.strategy().run([&](ReplicaContext& replica) {
    return replica.all_reduce(op, make(replica.replica_id_in_sync_group()));
  }));
}

using Nest = std::tuple<Tensor, std::tuple<Tensor, std::map<std::string, Tensor>>>;

Nest nest(int r) {
  return {number(1 + 2 * r), {vector({39.0 - 36.0 * r, 2.0 + 39.0 * r}), {{"k", tensor({1.0 * r}, {1, 1})}}}};
}

}  // namespace

std::vector<Scenario> all_reduce_scenarios() {
  const std::string_view numbers = "a number is a value of its replica";
  const auto sum_of_ids = [](const Layout& l) {
    double sum = 0;
    for (int r = 0; r < l.replicas(); ++r) sum += r + 1;
    return sum;
  };
  return {
      {"allreduce/SUM_scalar",
       [](const Layout& l) { return reduced(l, ReduceOp::kSum, [](int r) { return number(r + 1); }); }},
      {"allreduce/mean_scalar",
       [](const Layout& l) { return reduced(l, ReduceOp::kMean, [](int r) { return number(r + 1); }); }},
      {"allreduce/SUM_nested", [](const Layout& l) { return reduced(l, ReduceOp::kSum, nest); }},
      {"allreduce/MEAN_nested", [](const Layout& l) { return reduced(l, ReduceOp::kMean, nest); }},
      {"allreduce/SUM_int32",
       [](const Layout& l) {
         return reduced(l, ReduceOp::kSum, [](int r) { return Tensor::scalar<std::int32_t>(r + 1); });
       }},
      {"allreduce/MEAN_int64",
       [](const Layout& l) {
         return reduced(l, ReduceOp::kMean, [](int r) { return Tensor::scalar<std::int64_t>(r + 1); });
       }},
      {"allreduce/SUM_python_number",
       [](const Layout& l) { return reduced(l, ReduceOp::kSum, [](int r) { return r + 1.0; }); },
       {{"", numbers, [=](const Layout& l) { return on_each(l, sum_of_ids(l)); }}}},
      {"allreduce/MEAN_python_number",
       [](const Layout& l) { return reduced(l, ReduceOp::kMean, [](int r) { return r + 1.0; }); },
       {{"", numbers, [=](const Layout& l) { return on_each(l, sum_of_ids(l) / l.replicas()); }}}},
      {"allreduce/SUM_python_equal",
       [](const Layout& l) { return reduced(l, ReduceOp::kSum, [](int) { return 3.0; }); },
       {{"", numbers, [](const Layout& l) { return on_each(l, 3.0 * l.replicas()); }}}},
      {"allreduce/MEAN_python_equal",
       [](const Layout& l) { return reduced(l, ReduceOp::kMean, [](int) { return 3.0; }); },
       {{"", numbers, [](const Layout& l) { return on_each(l, 3.0); }}}},
      {"allreduce/SUM_shared_tensor",
       [](const Layout& l) {
         const Tensor shared = number(3);
         return reduced(l, ReduceOp::kSum, [&](int) { return Tensor(shared); });
       },
       {{kSeveralReplicas, kSharedTensor, [](const Layout& l) { return on_each(l, 3.0 * l.replicas()); }}}},
      {"allreduce/MEAN_shared_tensor",
       [](const Layout& l) {
         const Tensor shared = number(3);
         return reduced(l, ReduceOp::kMean, [&](int) { return Tensor(shared); });
       }},
      {"allreduce/empty_list",
       [](const Layout& l) { return reduced(l, ReduceOp::kSum, [](int) { return std::vector<Tensor>(); }); },
       {{"", "an empty structure is its own sum", [](const Layout& /*l*/) { return Json::array(); }}}},
      {"allreduce/different_ops",
       [](const Layout& l) {
         return show(l.strategy().run([](ReplicaContext& replica) {
           const int r = replica.replica_id_in_sync_group();
           return replica.all_reduce(r == 0 ? ReduceOp::kSum : ReduceOp::kMean, number(r + 1));
         }));
       },
       {{"mirrored2 mirrored3 central2", "replicas that differ are an error",
         [](const Layout& /*l*/) { return an_error(); }}}},
      {"allreduce/different_structure",
       [](const Layout& l) {
         return reduced(l, ReduceOp::kSum,
                        [](int r) { return std::vector<Tensor>(r == 0 ? 1 : 2, number(r + 1)); });
       },
       {{"default1 onedevice1", "types are static", [](const Layout& /*l*/) { return Json::array({1.0}); }}}},
      {"allreduce/options",
       [](const Layout& l) {
         return show(l.strategy().run([](ReplicaContext& replica) {
           const int r = replica.replica_id_in_sync_group();
           return replica.all_reduce(ReduceOp::kSum, std::tuple(number(r), vector({1.0 * r, 1}), number(5)),
                                     {.timeout_seconds = 0,
                                      .bytes_per_pack = 4,
                                      .implementation = CommunicationImplementation::kRing});
         }));
       }},
      {"allreduce/shape_mismatch",
       [](const Layout& l) {
         return reduced(l, ReduceOp::kSum, [](int r) { return Tensor::full({r + 1}, DType::kFloat32, 1); });
       }},
      {"allreduce/zero_elements",
       [](const Layout& l) {
         return reduced(l, ReduceOp::kSum, [](int) { return Tensor::zeros({0}, DType::kFloat32); });
       }},
  };
}

namespace {

// Gradients through collectives: the transposed calls, given the gradients of the results.

/// Of c * all_reduce(x) for x, with c = r + 1.
Scenario through_all_reduce(std::string name, ReduceOp op) {
  return {std::move(name), [=](const Layout& l) {
            return show(l.strategy().run([&](ReplicaContext& replica) {
              return replica.all_reduce(op, number(replica.replica_id_in_sync_group() + 1));
            }));
          }};
}

/// Of the sum of w * all_gather(x) for x, with r + 1 rows of x and w = 1, 2, ...
Json through_all_gather(const Layout& l) {
  return show(l.strategy().run([](ReplicaContext& replica) {
    const Tensor x = Tensor::zeros({replica.replica_id_in_sync_group() + 1, 1}, DType::kFloat32);
    const Tensor weights = replica.all_gather(x, 0);
    float row = 0;
    for (float& weight : weights.span<float>()) weight = ++row;
    return replica.reduce_scatter(ReduceOp::kSum, weights, x, 0);
  }));
}

}  // namespace

std::vector<Scenario> gradient_scenarios() {
  return {
      through_all_reduce("allreduce/SUM_grad", ReduceOp::kSum),
      through_all_reduce("allreduce/MEAN_grad", ReduceOp::kMean),
      {"allgather/grad", through_all_gather},
  };
}

namespace {

// Which tensors of a list share a collective: `pack/<bytes of each>_limit<bytes per pack>`.

struct Case {
  std::vector<std::int64_t> bytes;
  std::size_t limit;
};

std::vector<Case> cases() {
  return {
      {{128, 32, 800, 4}, 200},
      {{128, 32, 800, 4}, 0},
      {{128, 32, 800, 4}, 160},
      {{100, 100, 100}, 100},
      {{100, 100, 100}, 99},
      {{400}, 10},
      {{}, 10},
  };
}

/// The bytes of the tensors in each pack. The recorded function goes through its list from the
/// front; make_packs starts at the end, as a backward pass does, and so gets the list reversed.
Json packed(const Case& one) {
  std::vector<TensorSpec> specs;
  specs.reserve(one.bytes.size());
  for (const std::int64_t bytes : one.bytes) specs.push_back({{bytes}, DType::kUInt8});
  std::ranges::reverse(specs);
  Json packs = Json::array();
  for (const Pack& pack : make_packs(specs, one.limit)) {
    packs.push_back(Json::array());
    for (const std::size_t tensor : pack) packs.back().push_back(specs[tensor].bytes());
  }
  return packs;
}

}  // namespace

std::vector<Scenario> packing_scenarios() {
  std::vector<Scenario> scenarios;
  for (const Case& one : cases()) {
    const std::string list = one.bytes.empty() ? "none" : fmt::format("{}", fmt::join(one.bytes, "_"));
    scenarios.push_back(
        {fmt::format("pack/{}_limit{}", list, one.limit), [one](const Layout&) { return packed(one); }});
  }
  return scenarios;
}

namespace {

// CommunicationOptions, shown as [bytes per pack, time-out, implementation].

/// The original's name of the enumerator.
Json show_implementation(CommunicationImplementation implementation) {
  std::string name(to_string(implementation));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

Json show_options(const CommunicationOptions& options) {
  return {options.bytes_per_pack, show(options.timeout_seconds), show_implementation(options.implementation)};
}

constexpr CommunicationOptions kAllSet{
    .timeout_seconds = 5, .bytes_per_pack = 10, .implementation = CommunicationImplementation::kNccl};

}  // namespace

std::vector<Scenario> options_scenarios() {
  return {
      {"options/defaults", [](const Layout&) { return show_options({}); }},
      {"options/impl_string",
       [](const Layout&) {
         return Json{show_implementation(parse_communication_implementation("RING")),
                     show_implementation(parse_communication_implementation("ring"))};
       }},
      {"options/impl_bad",
       [](const Layout&) { return show_implementation(parse_communication_implementation("x")); }},
      {"options/timeout_negative",
       [](const Layout&) {
         const CommunicationOptions options{.timeout_seconds = -1};
         options.validate();
         return show(options.timeout_seconds);
       },
       {{"", "a time-out is not negative", [](const Layout&) { return an_error(); }}}},
      {"options/merge_default", [](const Layout&) { return show_options(kAllSet.merge({})); }},
      {"options/merge_over",
       [](const Layout&) {
         return show_options(
             kAllSet.merge({.bytes_per_pack = 20, .implementation = CommunicationImplementation::kRing}));
       }},
  };
}

}  // namespace cohort::conformance
