// How a variable in shards is changed: as a whole, and by rows.
#include <map>

#include "sharded.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kFitsOrNothing = "a change of shards fits, or changes nothing";

using Scatter = const ShardedVariable& (ShardedVariable::*)(const IndexedSlices&) const;
using Assign = const ShardedVariable& (ShardedVariable::*)(const Tensor&) const;

Scatter scatter_named(const std::string& name) {
  static const std::map<std::string, Scatter> kScatters{
      {"scatter_add", &ShardedVariable::scatter_add},      {"scatter_sub", &ShardedVariable::scatter_sub},
      {"scatter_mul", &ShardedVariable::scatter_mul},      {"scatter_div", &ShardedVariable::scatter_div},
      {"scatter_min", &ShardedVariable::scatter_min},      {"scatter_max", &ShardedVariable::scatter_max},
      {"scatter_update", &ShardedVariable::scatter_update}};
  return kScatters.at(name);
}

Assign assign_named(const std::string& name) {
  static const std::map<std::string, Assign> kAssigns{{"assign", &ShardedVariable::assign},
                                                      {"assign_add", &ShardedVariable::assign_add},
                                                      {"assign_sub", &ShardedVariable::assign_sub}};
  return kAssigns.at(name);
}

/// `[[1, 2], [3, 4]]` as a tensor with `columns` columns.
Tensor rows_from(const Json& rows, std::int64_t columns, DType dtype) {
  std::vector<double> values;
  for (const Json& row : rows)
    for (const Json& value : row) values.push_back(value.get<double>());
  return Tensor::from(values, {std::ssize(rows), columns}).cast(dtype);
}

/// The rows that the line names with their values; `ones` are as many as the indices.
IndexedSlices slices_of(const Json& input, const ShardedVariable& variable) {
  const Json& named = input.at("indices");
  // Otherwise: `first and last row where needed`.
  const auto indices = named.is_array() ? named.get<std::vector<std::int64_t>>()
                                        : std::vector<std::int64_t>{0, variable.layout().rows() - 1};
  const std::int64_t columns = variable.shape()[1];
  const Json& values = input.contains("values") ? input.at("values") : Json("ones");
  Tensor rows = Tensor::full({std::ssize(indices), columns}, variable.dtype(), 1);
  if (values.is_array()) rows = rows_from(values, columns, variable.dtype());
  if (values == "1x2 ones") rows = Tensor::full({1, 2}, variable.dtype(), 1);
  return {rows, Tensor::from(indices), variable.shape()};
}

Json scattered(const Record& record, const ShardedVariable& variable) {
  const Json& input = record.arguments;
  (variable.*scatter_named(input.at("op").get<std::string>()))(slices_of(input, variable));
  return show_shards(variable);
}

/// Without shards: 1 is added to the first row and to the last one.
Json added_to_first_and_last(const Record& record) {
  const Tensor whole = counted_rows(record.arguments);
  for (const Tensor& row : {whole.row(0), whole.row(-1)})
    for (float& element : row.span<float>()) element += 1;
  Json shards = Json::array();
  std::int64_t begin = 0;
  for (const std::int64_t extent : layout_of(record.arguments).extents()) {
    shards.push_back(show(whole.rows(begin, begin + extent)));
    begin += extent;
  }
  return shards;
}

Json assigned(const Record& record, const ShardedVariable& variable) {
  const Json& input = record.arguments;
  const Tensor value = input.contains("value")
                           ? rows_from(input.at("value"), variable.shape()[1], variable.dtype())
                           : Tensor::zeros(variable.shape(), variable.dtype());
  (variable.*assign_named(input.at("op").get<std::string>()))(value);
  return show_shards(variable);
}

/// A line in which `value` is assigned.
ShardedUse assigning(const Tensor& value) {
  return [value](const Record& /*record*/, const ShardedVariable& variable) {
    return show_shards(variable.assign(value));
  };
}

Json returned_by_assign(const Record& /*record*/, const ShardedVariable& variable) {
  const ShardedVariable& returned = variable.assign(Tensor::zeros({10, 3}, DType::kFloat32));
  return &returned == &variable ? "ShardedVariable" : "another variable";
}

Json left_by_what_does_not_fit(const Record& /*record*/, const ShardedVariable& variable) {
  Json raised = nullptr;
  try {
    variable.assign(Tensor::zeros({9, 3}, DType::kFloat32));
  } catch (const Error&) {
    raised = "InvalidArgumentError";
  }
  return {{"raised", raised}, {"after", show_shards(variable)}};
}

Json unchanged(const Record& record) {
  return {{"raised", "InvalidArgumentError"},
          {"after", show_shards(in_shards(counted_rows(record.arguments), layout_of(record.arguments)))}};
}

Json refused(const Record& /*record*/) { return an_error(); }

}  // namespace

std::vector<Family> sharded_change_families() {
  const auto places = std::make_shared<ShardedPlaces>();
  const auto family = [&](std::vector<std::string_view> patterns, const ShardedUse& use,
                          std::vector<FamilyDifference> differences = {}) {
    return ShardedPlaces::family(places, std::move(patterns), use, std::move(differences));
  };
  const DType f32 = DType::kFloat32;
  return {
      family({"w2/sharded/none/op_assign_returns"}, returned_by_assign),
      family({"w2/sharded/none/op_assign_wrong_rows"}, assigning(Tensor::zeros({9, 3}, f32))),
      family({"w2/sharded/none/op_assign_more_rows"}, assigning(Tensor::full({11, 3}, f32, 1)),
             {{"*", kFitsOrNothing, refused}}),
      family({"w2/sharded/none/op_assign_partial_effect"}, left_by_what_does_not_fit,
             {{"*", kFitsOrNothing, unchanged}}),
      family({"w2/sharded/none/op_assign_scalar"}, assigning(Tensor::scalar(5.0F))),
      family({"w2/sharded/none/op_assign_int"}, assigning(Tensor::zeros({10, 3}, DType::kInt32))),
      family(
          {"w2/sharded/none/assign_*", "w2/sharded/none/uneven*_assign", "w2/sharded/none/zero_shard_assign"},
          assigned),
      family(
          {"w2/sharded/none/scatter_*", "w2/sharded/none/*_scatter_add", "w2/sharded/none/op_scatter_add_*"},
          scattered,
          {{"w2/sharded/none/uneven24_*", kAnyShards, added_to_first_and_last},
           {"w2/sharded/none/zero_shard_*", kAnyShards, added_to_first_and_last},
           {"*_badcols", kFitsOrNothing, refused}}),
  };
}

}  // namespace cohort::conformance
