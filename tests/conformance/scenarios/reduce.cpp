// `reduce`, with and without axes, by operators given as text, and of IndexedSlices.
#include <array>

#include <fmt/format.h>

#include "common.h"

namespace cohort::conformance {
namespace {

// `reduce`, with and without axes.

constexpr std::string_view kSameDTypes = "the same dtypes everywhere";

/// [[1, 2, 3], [4, 5, 6]] times r + 1.
Tensor matrix(int r) {
  std::vector<double> values;
  for (int i = 1; i <= 6; ++i) values.push_back(i * (r + 1.0));
  return tensor(std::move(values), {2, 3});
}

/// Replica 0 has [1, 2, 3], the others nothing.
Tensor some_empty(int r) { return r == 0 ? vector({1, 2, 3}) : vector({}); }

using Make = Tensor (*)(int replica);

struct Case {
  std::string_view name;
  Make make;
  std::optional<Axes> axes;
};

std::vector<Case> cases() {
  const auto ragged_rows = [](int r) {
    std::vector<double> values;
    for (int row = 0; row <= r; ++row) values.insert(values.end(), {r + 1.0, 2 * (r + 1.0)});
    return tensor(std::move(values), {r + 1, 2});
  };
  const Make scalar = [](int r) { return number(r + 1); };
  const Make pair = [](int r) { return vector({r + 1.0, 10 * (r + 1.0)}); };
  const Axes no_axes(std::initializer_list<int>{});
  return {
      {"none_scalar", scalar, {}},
      {"none_vector", pair, {}},
      {"axis0_matrix", matrix, 0},
      {"axis1_matrix", matrix, 1},
      {"axis-1_matrix", matrix, -1},
      {"axis-2_matrix", matrix, -2},
      {"axis(0, 1)_matrix", matrix, Axes{0, 1}},
      {"axis0_vector", pair, 0},
      {"axis1_ragged_eq", matrix, 1},
      {"axis0_ragged", ragged_rows, 0},
      {"axis0_ragged_1d",
       [](int r) { return vector(std::vector<double>(static_cast<std::size_t>(r + 1), r)); }, 0},
      {"axis0_some_empty", some_empty, 0},
      {"axis0_all_empty", [](int) { return vector({}); }, 0},
      {"axis_out_of_range", pair, 2},
      {"axis_scalar0", scalar, 0},
      {"axis_empty_tuple", pair, no_axes},
      {"shape_mismatch", [](int r) { return Tensor::zeros({r + 1}, DType::kFloat32); }, {}},
  };
}

Json reduced(const Layout& l, ReduceOp op, const Case& one) {
  const PerReplica<Tensor> values = l.each(one.make);
  return show(one.axes ? l.strategy().reduce(op, values, *one.axes) : l.strategy().reduce(op, values));
}

Json with_dtype(const Tensor& result) { return {show(result), to_string(result.dtype())}; }

struct Kind {
  DType dtype;
  bool byte;  ///< which the original cannot reduce between workers
};
constexpr std::array kKinds{Kind{DType::kInt8, true},     Kind{DType::kUInt8, true},
                            Kind{DType::kInt32, false},   Kind{DType::kInt64, false},
                            Kind{DType::kFloat16, false}, Kind{DType::kBFloat16, false},
                            Kind{DType::kFloat64, false}};

/// [value, dtype] of r + 1, and along axis 0 of [r + 1, 2].
void add_dtypes(std::vector<Scenario>& scenarios, ReduceOp op, const std::string& prefix) {
  for (const Kind kind : kKinds) {
    const std::string dtype(to_string(kind.dtype));
    const auto without_axis = [=](const Layout& l) {
      return with_dtype(
          l.strategy().reduce(op, l.each([&](int r) { return number(r + 1).cast(kind.dtype); })));
    };
    const auto along_axis = [=](const Layout& l) {
      return with_dtype(l.strategy().reduce(op, l.each([&](int r) {
        return vector({r + 1.0, 2}).cast(kind.dtype);
      }),
                                            0));
    };
    std::vector<Difference> none_differs;
    std::vector<Difference> axis_differs;
    if (kind.byte) {
      const double share = op == ReduceOp::kMean ? 1 : 0;
      const std::string wide = share > 0 ? "float32" : dtype;
      none_differs = {{"mwms2", kSameDTypes, [=](const Layout&) {
                         return Json{share > 0 ? 1.5 : 3.0, wide};
                       }}};
      axis_differs = {{"mwms2", kSameDTypes, [=](const Layout&) {
                         return Json{share > 0 ? 1.75 : 7.0, wide};
                       }}};
    }
    scenarios.push_back({fmt::format("{}none_{}", prefix, dtype), without_axis, none_differs});
    scenarios.push_back({fmt::format("{}axis0_{}", prefix, dtype), along_axis, axis_differs});
  }
}

void add_values(std::vector<Scenario>& scenarios, ReduceOp op, const std::string& prefix) {
  scenarios.push_back({prefix + "plain_tensor", [=](const Layout& l) {
                         return show(l.strategy().reduce(op, vector({1, 2})));
                       }});
  scenarios.push_back(
      {prefix + "python_number", [=](const Layout& l) { return show(l.strategy().reduce(op, 3.0)); }});
  scenarios.push_back(
      {prefix + "nested",
       [=](const Layout& l) {
         return show(l.strategy().reduce(op, l.each([](int r) {
           return std::tuple(number(r + 1), std::map<std::string, std::vector<Tensor>>{{"a", {number(r)}}});
         })));
       },
       {{"mwms2 central2", "structures everywhere", [=](const Layout&) {
           const double share = op == ReduceOp::kMean ? 2 : 1;
           return Json{3.0 / share, {{"a", Json::array({1.0 / share})}}};
         }}}});
  std::vector<Difference> counts_each;
  if (op == ReduceOp::kSum)
    counts_each = {
        {kSeveralReplicas, kSharedTensor, [](const Layout& l) { return Json(5.0 * l.replicas()); }}};
  scenarios.push_back({prefix + "shared_value",
                       [=](const Layout& l) {
                         const Tensor captured = number(5);
                         return show(l.strategy().reduce(op, l.run([&](int) { return Tensor(captured); })));
                       },
                       counts_each});
}

}  // namespace

std::vector<Scenario> reduce_scenarios() {
  std::vector<Scenario> scenarios;
  for (const auto& [op, prefix] : {std::pair(ReduceOp::kSum, std::string("reduce/SUM_")),
                                   std::pair(ReduceOp::kMean, std::string("reduce/MEAN_"))}) {
    for (const Case& one : cases())
      scenarios.push_back(
          {prefix + std::string(one.name), [op = op, one](const Layout& l) { return reduced(l, op, one); }});
    add_dtypes(scenarios, op, prefix);
    add_values(scenarios, op, prefix);
  }
  scenarios.push_back(
      {"reduce/MEAN_int8_overflow",
       [](const Layout& l) {
         return with_dtype(l.strategy().reduce(ReduceOp::kMean,
                                               l.each([](int) { return number(100).cast(DType::kInt8); })));
       },
       {{"mirrored2 mirrored3 central2 mwms2", "the mean of integers does not wrap", [](const Layout&) {
           return Json{100.0, "float32"};
         }}}});
  scenarios.push_back({"reduce/shape_mismatch", [](const Layout& l) {
                         return reduced(
                             l, ReduceOp::kSum,
                             {"", [](int r) { return Tensor::zeros({r + 1}, DType::kFloat32); }, {}});
                       }});
  scenarios.push_back(
      {"reduce/dtype_mismatch", [](const Layout& l) {
         return reduced(
             l, ReduceOp::kSum,
             {"", [](int r) { return number(1).cast(r == 0 ? DType::kFloat32 : DType::kFloat64); }, {}});
       }});
  scenarios.push_back(
      {"reduce/bool", [](const Layout& l) {
         return reduced(l, ReduceOp::kSum, {"", [](int) { return Tensor::scalar(true); }, {}});
       }});
  return scenarios;
}

namespace {

// Operators given as text.

/// r + 1, reduced by the operator of that name.
Scenario reduced(std::string name, std::string_view op) {
  return {std::move(name), [=](const Layout& l) {
            return show(l.strategy().reduce(op, l.each([](int r) { return number(r + 1); })));
          }};
}

}  // namespace

std::vector<Scenario> operator_scenarios() {
  return {
      reduced("reduce/op_string_sum", "sum"),
      reduced("reduce/op_string_Sum", "Sum"),
      reduced("reduce/op_string_mean", "mean"),
      reduced("reduce/op_string_max", "max"),
      reduced("reduce/op_string_empty", ""),
      {"allreduce/bad_op",
       [](const Layout& l) {
         return show(
             l.strategy().run([](ReplicaContext& replica) { return replica.all_reduce("max", number(1)); }));
       }},
  };
}

namespace {

// IndexedSlices in `reduce`, `all_reduce` and `gather`.

IndexedSlices slices(const std::vector<std::int64_t>& indices, std::vector<double> values) {
  const auto rows = static_cast<std::int64_t>(indices.size());
  return {vector(std::move(values)), Tensor::from(std::span<const std::int64_t>(indices), {rows}), {5}};
}

/// Row 0 has r + 1, and row r has 1.
IndexedSlices two_rows(int r) { return slices({0, r}, {r + 1.0, 1}); }

/// Rows 0 to r, all of them r.
IndexedSlices uneven(int r) {
  std::vector<std::int64_t> rows;
  for (int row = 0; row <= r; ++row) rows.push_back(row);
  return slices(rows, std::vector<double>(rows.size(), r));
}

using MakeSlices = IndexedSlices (*)(int replica);

Scenario all_reduced(std::string name, ReduceOp op, MakeSlices make) {
  return {std::move(name), [=](const Layout& l) {
            return show(l.strategy().run([&](ReplicaContext& replica) {
              return replica.all_reduce(op, make(replica.replica_id_in_sync_group()));
            }));
          }};
}

Scenario reduced(std::string name, ReduceOp op) {
  return {std::move(name), [=](const Layout& l) { return show(l.strategy().reduce(op, l.each(two_rows))); }};
}

/// [1, 0, 0, 0, 0] of each replica, one after the other.
Json gathered_rows(const Layout& l) {
  Json dense = Json::array();
  for (int r = 0; r < l.replicas(); ++r)
    for (const double value : {1, 0, 0, 0, 0}) dense.push_back(value);
  return dense;
}

}  // namespace

std::vector<Scenario> sparse_scenarios() {
  return {
      reduced("reduce/indexed_slices", ReduceOp::kSum),
      reduced("reduce/indexed_slices_mean", ReduceOp::kMean),
      all_reduced("allreduce/SUM_slices", ReduceOp::kSum, two_rows),
      all_reduced("allreduce/SUM_slices_uneven", ReduceOp::kSum, uneven),
      all_reduced("allreduce/MEAN_slices_uneven", ReduceOp::kMean, uneven),
      {"gather/sparse",
       [](const Layout& l) {
         return show(l.strategy().gather(l.each([](int) { return slices({0}, {1}); }), 0));
       },
       {{"default1 onedevice1 mwms2", "sparse values are gathered everywhere", gathered_rows}}},
  };
}

}  // namespace cohort::conformance
