#include <cohort/server/sharded_variable.h>

#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/device/tensor_ops.h>

#include "server/selection.h"
#include "server/server_variables.h"
#include "server/shard_access.h"
#include "value/thread_scopes.h"

namespace cohort {
namespace {

/// How the current strategy cuts a variable. Only parameter servers do.
std::optional<ShardLayout> current_cut(const Shape& shape, DType dtype) {
  const VariableOwner* strategy = current_mode().strategy;
  const auto* servers =
      strategy == nullptr ? nullptr : dynamic_cast<server::ServerVariables*>(strategy->variable_keeper());
  return servers == nullptr ? std::nullopt : servers->cut(shape, dtype);
}

Shape whole_shape(const VariableOptions& options) {
  if (!options.initial_value) return options.shape;
  const Shape& shape = options.initial_value->shape();
  if (options.shape.rank() == 0 || options.shape == shape) return shape;
  throw InvalidArgument("variable '{}': shape {} contradicts the initial value {}", options.name,
                        to_string(options.shape), describe(*options.initial_value));
}

/// The value of a shard that begins at row `first_row`; absent for zeros.
using ShardValue = std::function<std::optional<Tensor>(const Shape& shard, std::int64_t first_row)>;

std::vector<Variable> make_shards(const VariableOptions& options, const Shape& shape, DType dtype,
                                  const ShardValue& value) {
  const bool colocated = options.colocate_with != nullptr || thread_scopes().colocating > 0;
  const std::optional<ShardLayout> layout = colocated ? std::nullopt : current_cut(shape, dtype);
  std::vector<Variable> variables;
  const auto make = [&](std::string name, const Shape& shard, std::int64_t first_row) {
    VariableOptions own = options;
    own.shape = shard;
    own.name = std::move(name);
    own.initial_value = value(shard, first_row);
    variables.emplace_back(std::move(own));
  };
  if (!layout) {
    make(options.name, shape, 0);
    return variables;
  }
  for (int shard = 0; shard < layout->shards(); ++shard) {
    const RowRange rows = layout->range(shard);
    make(fmt::format("{}/part_{}", options.name, shard), shape.with(0, rows.end - rows.begin), rows.begin);
  }
  return variables;
}

std::vector<Variable> sliced_shards(const VariableOptions& options) {
  const std::optional<Tensor>& initial = options.initial_value;
  const Shape shape = whole_shape(options);
  return make_shards(options, shape, initial ? initial->dtype() : options.dtype,
                     [&](const Shape& shard, std::int64_t first_row) -> std::optional<Tensor> {
                       if (!initial || shard.rank() == 0) return initial;
                       return initial->rows(first_row, first_row + shard[0]);
                     });
}

std::vector<Variable> initialized_shards(const VariableOptions& options,
                                         const ShardInitializer& initializer) {
  if (options.initial_value) {
    throw InvalidArgument("ShardedVariable '{}' has an initial value and an initializer; give it one of them",
                          options.name);
  }
  return make_shards(
      options, options.shape, options.dtype,
      [&](const Shape& shard, std::int64_t first_row) -> std::optional<Tensor> {
        Tensor value = initializer(shard, first_row);
        if (value.shape() == shard && value.dtype() == options.dtype) return value;
        throw InvalidArgument(
            "the initializer of ShardedVariable '{}' returned {} for the shard from row {} on, "
            "which is {}{}",
            options.name, describe(value), first_row, to_string(options.dtype), to_string(shard));
      });
}

/// @throws InvalidArgument unless the variables are one along axis 0.
void require_one_table(const std::vector<Variable>& variables) {
  if (variables.empty()) throw InvalidArgument("a ShardedVariable needs at least one variable");
  const Variable& first = variables.front();
  for (const Variable& variable : variables) {
    const bool scalar = variable.shape().rank() == 0 && variables.size() > 1;
    if (!scalar && variable.dtype() == first.dtype() &&
        (variables.size() == 1 ||
         (variable.shape().rank() == first.shape().rank() && variable.shape().row() == first.shape().row())))
      continue;
    throw InvalidArgument(
        "variables '{}', {}{}, and '{}', {}{}, cannot be shards of one: they must have rows, of the same "
        "shape and dtype",
        first.name(), to_string(first.dtype()), to_string(first.shape()), variable.name(),
        to_string(variable.dtype()), to_string(variable.shape()));
  }
}

ShardLayout layout_of(const std::vector<Variable>& variables) {
  require_one_table(variables);
  std::vector<std::int64_t> extents;
  for (const Variable& variable : variables)
    extents.push_back(variable.shape().rank() == 0 ? 1 : variable.shape()[0]);
  return ShardLayout(extents);
}

}  // namespace

ShardedVariable::ShardedVariable(VariableOptions options)
    : ShardedVariable(sliced_shards(options), options.name) {}

ShardedVariable::ShardedVariable(VariableOptions options, const ShardInitializer& initializer)
    : ShardedVariable(initialized_shards(options, initializer), options.name) {}

ShardedVariable::ShardedVariable(std::vector<Variable> variables, std::string name) {
  ShardLayout layout = layout_of(variables);
  const Shape first = variables.front().shape();
  const Shape shape = first.rank() == 0 ? first : first.with(0, layout.rows());
  parts_ = std::make_shared<const Parts>(std::move(variables), std::move(name), shape, std::move(layout));
}

Tensor ShardedVariable::read() const {
  std::vector<Tensor> values = read_shards(variables());
  return values.size() == 1 ? std::move(values.front()) : concatenate(values, 0);
}

Tensor ShardedVariable::at(const Index& index) const {
  const Selection selection = select(index, shape());
  Tensor result = Tensor::uninitialized(selection.shape, dtype());
  if (result.bytes() == 0) return result;
  if (shape().rank() == 0) {
    result.reshape(Shape()).copy_from(read().on_host());
    return result;
  }
  const AxisRange& wanted = selection.axes.front();
  std::vector<ShardRows> parts;
  std::vector<std::int64_t> positions;
  for (const ShardRange& range : layout().split(wanted)) {
    ShardRows& part = parts.emplace_back(ShardRows{.shard = range.shard});
    for (std::int64_t i = 0; i < range.rows.count; ++i) part.rows.push_back(range.rows[i]);
    positions.push_back(range.position);
  }
  const std::vector<Tensor> values = read_rows(variables(), parts);
  const std::size_t row_bytes = result.bytes() / static_cast<std::size_t>(wanted.count);
  std::vector<AxisRange> axes = selection.axes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    axes.front() = {.first = 0, .step = 1, .count = values[i].shape()[0]};
    copy_selected(values[i], axes,
                  result.raw().subspan(static_cast<std::size_t>(positions[i]) * row_bytes,
                                       parts[i].rows.size() * row_bytes));
  }
  return result;
}

Tensor ShardedVariable::masked(const Tensor& mask) const {
  return embedding_lookup(*this, Tensor::from(marked_rows(mask, layout().rows())));
}

Tensor embedding_lookup(const ShardedVariable& variable, const Tensor& rows) {
  if (rows.dtype() != DType::kInt32 && rows.dtype() != DType::kInt64)
    throw InvalidArgument("embedding_lookup: rows are {}; they must be int32 or int64", describe(rows));
  if (variable.shape().rank() == 0)
    throw InvalidArgument("embedding_lookup: '{}' is a scalar, which has no rows", variable.name());
  const Tensor wanted = rows.on_host().cast(DType::kInt64);
  std::vector<std::int64_t> extents(wanted.shape().extents().begin(), wanted.shape().extents().end());
  for (const std::int64_t extent : variable.shape().row().extents()) extents.push_back(extent);
  const Tensor result = Tensor::uninitialized(Shape(extents), variable.dtype());
  const std::vector<ShardRows> parts =
      variable.layout().split(std::span<const std::int64_t>(wanted.span<std::int64_t>()));
  const std::vector<Tensor> values = read_rows(variable.variables(), parts);
  for (std::size_t i = 0; i < values.size(); ++i) copy_rows(values[i], {}, result, parts[i].positions);
  return result;
}

}  // namespace cohort
