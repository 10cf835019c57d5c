// What a variable in shards is made of and tells about itself, and what programs compute with it.
#include <array>

#include <cohort/device/tensor_ops.h>

#include "sharded.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kTellsTrainable = "a variable in shards tells whether it is trainable";
constexpr std::string_view kAnyShape = "rows are asked for in any shape";

// ---- five rows of one element each, in shards of 2, 2 and 1

Tensor five_rows(float first) {
  return Tensor::from(std::vector{first, first + 1, first + 2, first + 3, first + 4}, {5, 1});
}

Json shape_type_and_number(const ShardedVariable& variable) {
  const Shape& shape = variable.shape();
  return {fmt::format("({}, {})", shape[0], shape[1]), to_string(variable.dtype()),
          variable.variables().size()};
}

Json added_to_rows(const ShardedVariable& variable) {
  variable.scatter_add({tensor({10, 10}, {2, 1}), Tensor::from({0, 4}), variable.shape()});
  return show_shards(variable);
}

// ---- what programs compute

Json plus_one(const Record& /*record*/, const ShardedVariable& variable) {
  const Tensor value = variable.read();
  for (float& element : value.span<float>()) element += 1;
  return show(value);
}

/// The product with ones.
Json sums_of_rows(const Record& /*record*/, const ShardedVariable& variable) {
  constexpr std::array kColumns{1};
  return show(sum_along(variable.read(), kColumns).reshape({-1, 1}));
}

Json sum_of_all(const Record& /*record*/, const ShardedVariable& variable) {
  constexpr std::array kRowsAndColumns{0, 1};
  return show(sum_along(variable.read(), kRowsAndColumns));
}

Json equals_itself(const Record& /*record*/, const ShardedVariable& variable) {
  const Tensor once = variable.read();
  const Tensor again = variable.read();
  const Tensor equal = Tensor::zeros(once.shape(), DType::kBool);
  for (std::size_t i = 0; i < once.elements(); ++i)
    equal.span<bool>()[i] = once.span<float>()[i] == again.span<float>()[i];
  Json rows = Json::array();
  for (std::int64_t row = 0; row < equal.shape()[0]; ++row) {
    rows.push_back(Json::array());
    for (const bool element : equal.row(row).span<bool>()) rows.back().push_back(element);
  }
  return rows;
}

/// Of the sum of squares of some rows: twice these rows.
Json gradient_of_rows(const Record& /*record*/, const ShardedVariable& variable) {
  const Tensor indices = Tensor::from({0, 9, 9});
  const Tensor twice = embedding_lookup(variable, indices);
  for (float& element : twice.span<float>()) element *= 2;
  Json shards = Json::array();
  for (const SparseGradientAndVariable& part :
       variable.split_gradient(IndexedSlices{twice, indices, variable.shape()}))
    shards.push_back({"IndexedSlices", show(part.gradient)});
  return shards;
}

Json gradient_of_all(const Record& /*record*/, const ShardedVariable& variable) {
  Json shards = Json::array();
  for (const GradientAndVariable& part :
       variable.split_gradient(Tensor::full(variable.shape(), variable.dtype(), 1)))
    shards.push_back({"EagerTensor", show(part.gradient)});
  return shards;
}

// ---- rows and columns

/// `4`, `[0, 9]` or `[[0, 1]]` as a tensor.
Tensor indices_from(const Json& indices) {
  if (!indices.is_array()) return Tensor::scalar(indices.get<std::int64_t>());
  if (!indices.front().is_array()) return Tensor::from(indices.get<std::vector<std::int64_t>>());
  std::vector<std::int64_t> numbers;
  for (const Json& row : indices)
    for (const Json& number : row) numbers.push_back(number.get<std::int64_t>());
  return Tensor::from(numbers).reshape({std::ssize(indices), -1});
}

Json looked_up_in_use(const Record& record, const ShardedVariable& variable) {
  return show(embedding_lookup(variable, indices_from(record.arguments.at("indices"))));
}

Json third_and_first_column(const Record& /*record*/, const ShardedVariable& variable) {
  return show(variable.at({Slice{}, Slice{.begin = 2, .step = -2}}));
}

Json about_itself(const Record& /*record*/, const ShardedVariable& variable) {
  return {variable.shape().extents(), to_string(variable.dtype()), variable.name(),
          variable.trainable(),       variable.variables().size(), nullptr};
}

Json with_trainable(const Record& record) {
  Json outcome = record.outcome;
  outcome.at(3) = true;
  return outcome;
}

/// All rows of a table whose row i is i + 0.5.
Json all_rows(const Record& record) {
  const auto rows = record.arguments.at("rows").get<std::int64_t>();
  std::vector<float> values;
  std::vector<std::int64_t> indices;
  for (std::int64_t row = 0; row < rows; ++row) {
    values.push_back(static_cast<float>(row) + 0.5F);
    indices.push_back(row);
  }
  const ShardLayout layout(rows, record.arguments.at("shards").get<int>());
  return show(embedding_lookup(in_shards(Tensor::from(values, {rows, 1}), layout), Tensor::from(indices)));
}

// ---- made of variables

Variable made_of(const Tensor& value) { return Variable({.initial_value = value}); }

Json made_twice() {
  const Variable shard = made_of(Tensor::from({1.0F}));
  const ShardedVariable first({shard});
  const ShardedVariable second({shard});
  return {Json{{"Sharded", show_shards(first)}}, Json{{"Sharded", show_shards(second)}}};
}

Json made_of_no_rows() {
  const Tensor nothing = Tensor::zeros({0, 2}, DType::kFloat32);
  return ShardedVariable({made_of(nothing), made_of(nothing)}).shape().extents();
}

Json shape_made_of(const std::vector<Tensor>& values) {
  std::vector<Variable> shards;
  shards.reserve(values.size());
  for (const Tensor& value : values) shards.push_back(made_of(value));
  return ShardedVariable(std::move(shards)).shape().extents();
}

}  // namespace

std::vector<Scenario> sharded_use_scenarios() {
  const auto places = std::make_shared<ShardedPlaces>();
  std::vector<Scenario> all;
  const auto add = [&](const char* name, const std::function<Json()>& scenario) {
    all.push_back({fmt::format("sharded/{}", name),
                   [places, scenario](const Layout& /*layout*/) { return places->everywhere(scenario); }});
  };
  const auto use = [&](const char* name, const std::function<Json(const ShardedVariable&)>& function) {
    add(name, [function] { return function(in_shards(five_rows(0), {5, 3})); });
  };
  use("props", shape_type_and_number);
  use("convert", [](const ShardedVariable& variable) { return show(variable.read()); });
  use("assign", [](const ShardedVariable& variable) { return show_shards(variable.assign(five_rows(10))); });
  use("assign_add", [](const ShardedVariable& variable) {
    return show_shards(variable.assign_add(Tensor::full({5, 1}, DType::kFloat32, 1)));
  });
  use("assign_bad_shape", [](const ShardedVariable& variable) {
    return show_shards(variable.assign(Tensor::zeros({4, 1}, DType::kFloat32)));
  });
  use("scatter_add", added_to_rows);
  add("empty", [] { return shape_made_of({}); });
  add("dtype_mismatch", [] { return shape_made_of({Tensor::from({1.0F}), Tensor::from({1})}); });
  add("shape_mismatch", [] {
    return shape_made_of({Tensor::zeros({1, 2}, DType::kFloat32), Tensor::zeros({1, 3}, DType::kFloat32)});
  });
  return all;
}

std::vector<Family> sharded_use_families() {
  const auto places = std::make_shared<ShardedPlaces>();
  const auto family = [&](std::vector<std::string_view> patterns, const ShardedUse& use,
                          std::vector<FamilyDifference> differences = {}) {
    return ShardedPlaces::family(places, std::move(patterns), use, std::move(differences));
  };
  const auto made = [&](std::string_view pattern, const std::function<Json()>& scenario) {
    return Family{{pattern},
                  [places, scenario](const Record& /*record*/) { return places->everywhere(scenario); }};
  };
  return {
      family({"w2/sharded/none/op_add"}, plus_one),
      family({"w2/sharded/none/op_matmul"}, sums_of_rows),
      family({"w2/sharded/none/op_reduce_sum"}, sum_of_all),
      family({"w2/sharded/none/op_eq"}, equals_itself),
      family({"w2/sharded/none/op_gradient"}, gradient_of_rows),
      family({"w2/sharded/none/op_gradient_dense"}, gradient_of_all),
      family({"w2/sharded/none/op_lookup_2d", "w2/sharded/none/op_lookup_scalar",
              "w2/sharded/none/op_sparse_read_2d"},
             looked_up_in_use,
             {{"*/op_sparse_read_2d", kAnyShape,
               [](const Record& /*record*/) {
                 return Json::array({{{1, 2, 3}, {11, 12, 13}}});
               }}}),
      {{"w2/partitioner_v1/none/embedding_div_*"},
       [places](const Record& record) { return places->everywhere([&] { return all_rows(record); }); }},
      family({"w2/sharded/none/op_gather_axis1"}, third_and_first_column),
      family({"w2/sharded/none/op_props"}, about_itself, {{"*", kTellsTrainable, with_trainable}}),
      made("w2/sharded/none/ctor_rank0",
           [] {
             return shape_made_of({Tensor::scalar(1.0F), Tensor::scalar(2.0F)});
           }),
      made("w2/sharded/none/ctor_rank_mismatch",
           [] {
             return shape_made_of({Tensor::from({1.0F}), tensor({1}, {1, 1})});
           }),
      made("w2/sharded/none/ctor_tuple",
           [] {
             return shape_made_of({Tensor::from({1.0F}), Tensor::from({2.0F})});
           }),
      made("w2/sharded/none/ctor_reuse", made_twice),
      made("w2/sharded/none/ctor_default_name",
           [] { return Json(ShardedVariable({made_of(Tensor::from({1.0F}))}).name()); }),
      made("w2/sharded/none/ctor_static_first_dim_zero", made_of_no_rows),
  };
}

}  // namespace cohort::conformance
