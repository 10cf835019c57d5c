#include <cohort/server/sharded_variable.h>

#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/device/tensor_ops.h>
#include <cohort/server/shard_layout.h>
#include <cohort/value/variable.h>

#include "selection.h"
#include "server/client/server_variables.h"
#include "value/thread_scopes.h"

namespace cohort {
namespace {

using server::ServerVariable;
using server::Wanted;

// How the shards of a variable are read and written together, wherever they are kept.

/// @throws WrongContext while another strategy is active, as Variable::read.
void require_own_strategy(const ServerVariable& variable) {
  const VariableOwner* active = current_mode().strategy;
  if (active == nullptr || active == variable.owner()) return;
  throw WrongContext(
      "use of variable '{}', which belongs to {}, while {} is active: mixing different strategies",
      variable.options().name, variable.owner()->strategy_name(), active->strategy_name());
}

/// The states of shards that one client reads from servers; none where some are kept otherwise.
std::vector<const ServerVariable*> kept_by_servers(std::span<const Variable> shards) {
  std::vector<const ServerVariable*> kept;
  for (const Variable& shard : shards) {
    const auto* variable = dynamic_cast<const ServerVariable*>(shard.state().get());
    if (variable == nullptr) return {};
    require_own_strategy(*variable);
    if (!kept.empty() && &variable->client() != &kept.front()->client()) return {};
    kept.push_back(variable);
  }
  return kept;
}

/// The values of all shards, on whatever devices they lie. All servers are asked at once.
std::vector<Tensor> read_shards(std::span<const Variable> shards) {
  const std::vector<const ServerVariable*> kept = kept_by_servers(shards);
  if (kept.empty()) {
    std::vector<Tensor> values;
    for (const Variable& shard : shards) values.push_back(shard.read());
    return values;
  }
  ReadCache* const cache = thread_scopes().cache;
  std::vector<Tensor> values(kept.size());
  std::vector<Wanted> wanted;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (std::optional<Tensor> value = cache == nullptr ? std::nullopt : cache->find(*kept[i])) {
      values[i] = std::move(*value);
      continue;
    }
    wanted.push_back(kept[i]->wanted());
    places.push_back(i);
  }
  std::vector<Tensor> read = kept.front()->client().read(wanted);
  for (std::size_t i = 0; i < places.size(); ++i) {
    values[places[i]] = cache == nullptr ? std::move(read[i]) : cache->keep(*kept[places[i]], read[i]);
  }
  return values;
}

/// Rows `rows` of `from`, a CPU tensor, become the rows `positions` of `to`.
void copy_rows(const Tensor& from, std::span<const std::int64_t> rows, const Tensor& to,
               std::span<const std::int64_t> positions) {
  const std::size_t row_bytes = from.shape().row().elements() * size_of(from.dtype());
  const std::size_t count = rows.empty() ? positions.size() : rows.size();
  if (row_bytes == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t source = rows.empty() ? i : static_cast<std::size_t>(rows[i]);
    const std::size_t target = positions.empty() ? i : static_cast<std::size_t>(positions[i]);
    std::memcpy(to.data() + target * row_bytes, from.data() + source * row_bytes, row_bytes);
  }
}

/// The rows that each of `parts` names, on the host. All servers are asked at once.
std::vector<Tensor> read_rows(std::span<const Variable> shards, std::span<const ShardRows> parts) {
  if (parts.empty()) return {};
  const std::vector<const ServerVariable*> kept = kept_by_servers(shards);
  std::vector<Tensor> values;
  std::vector<Wanted> wanted;
  for (const ShardRows& part : parts) {
    const auto shard = static_cast<std::size_t>(part.shard);
    if (kept.empty()) {
      const Tensor all = shards[shard].read().on_host();
      values.push_back(Tensor::uninitialized(all.shape().with(0, std::ssize(part.rows)), all.dtype()));
      copy_rows(all, part.rows, values.back(), {});
      continue;
    }
    wanted.push_back(kept[shard]->wanted(Tensor::from(part.rows)));
  }
  return kept.empty() ? values : kept.front()->client().read(wanted);
}

/// Calls `function`, which changes shards. Those that servers keep change together when it has ended, or not
/// at all if it throws.
void change_together(std::span<const Variable> shards, const std::function<void()>& function) {
  const std::vector<const ServerVariable*> kept = kept_by_servers(shards);
  if (kept.empty()) return function();
  kept.front()->client().write_together(function);
}

// How a ShardedVariable is made.

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
  extents.reserve(variables.size());
  for (const Variable& variable : variables)
    extents.push_back(variable.shape().rank() == 0 ? 1 : variable.shape()[0]);
  return ShardLayout(extents);
}

/// `what`, a value or slices, for messages.
template <class Value>
void require_fitting(std::string_view operation, const Value& what, const Shape& shape, DType dtype,
                     const ShardedVariable& variable) {
  if (shape == variable.shape() && dtype == variable.dtype()) return;
  throw InvalidArgument("{} of {} to variable '{}', which is {}{}: dtype and shape must agree", operation,
                        describe(what), variable.name(), to_string(variable.dtype()),
                        to_string(variable.shape()));
}

}  // namespace

// Options of variables are taken by value everywhere; here two parts of this class read them at once.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
ShardedVariable::ShardedVariable(VariableOptions options)
    : ShardedVariable(sliced_shards(options), options.name) {}

// NOLINTNEXTLINE(performance-unnecessary-value-param)
ShardedVariable::ShardedVariable(VariableOptions options, const ShardInitializer& initializer)
    : ShardedVariable(initialized_shards(options, initializer), options.name) {}

ShardedVariable::ShardedVariable(std::vector<Variable> variables, std::string name) {
  ShardLayout layout = layout_of(variables);
  const Shape first = variables.front().shape();
  const Shape shape = first.rank() == 0 ? first : first.with(0, layout.rows());
  parts_ =
      std::make_shared<const Parts>(Parts{std::move(variables), std::move(name), shape, std::move(layout)});
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
  Tensor result = Tensor::uninitialized(Shape(extents), variable.dtype());
  const std::vector<ShardRows> parts =
      variable.layout().split(std::span<const std::int64_t>(wanted.span<std::int64_t>()));
  const std::vector<Tensor> values = read_rows(variable.variables(), parts);
  for (std::size_t i = 0; i < values.size(); ++i) copy_rows(values[i], {}, result, parts[i].positions);
  return result;
}

// How a ShardedVariable is changed: each shard gets its rows of what the whole gets.

std::vector<Tensor> ShardedVariable::split(const Tensor& value) const {
  if (variables().size() == 1) return {value};
  std::vector<Tensor> parts;
  for (int shard = 0; shard < layout().shards(); ++shard) {
    const RowRange rows = layout().range(shard);
    parts.push_back(value.rows(rows.begin, rows.end));
  }
  return parts;
}

std::vector<IndexedSlices> ShardedVariable::split(const IndexedSlices& rows) const {
  if (variables().size() == 1) return {rows};
  const Tensor indices = rows.indices.on_host().cast(DType::kInt64);
  const Tensor values = rows.values.on_host();
  std::vector<IndexedSlices> parts;
  for (const Variable& shard : variables()) {
    parts.push_back({Tensor::uninitialized(shard.shape().with(0, 0), dtype()),
                     Tensor::uninitialized({0}, DType::kInt64), shard.shape()});
  }
  for (const ShardRows& part : layout().split(std::span<const std::int64_t>(indices.span<std::int64_t>()))) {
    IndexedSlices& of_shard = parts[static_cast<std::size_t>(part.shard)];
    of_shard.indices = Tensor::from(part.rows);
    of_shard.values = Tensor::uninitialized(of_shard.dense_shape.with(0, std::ssize(part.rows)), dtype());
    copy_rows(values, part.positions, of_shard.values, {});
  }
  for (IndexedSlices& part : parts) part.values = part.values.to(rows.values.device());
  return parts;
}

void ShardedVariable::assign_by(std::string_view operation, AssignMember member, const Tensor& value) const {
  require_fitting(operation, value, value.shape(), value.dtype(), *this);
  const std::vector<Tensor> parts = split(value);
  change_together(variables(), [&] {
    for (std::size_t shard = 0; shard < parts.size(); ++shard) (variables()[shard].*member)(parts[shard]);
  });
}

void ShardedVariable::scatter_by(std::string_view operation, ScatterMember member,
                                 const IndexedSlices& rows) const {
  validate(rows);
  require_fitting(operation, rows, rows.dense_shape, rows.values.dtype(), *this);
  const std::vector<IndexedSlices> parts = split(rows);
  change_together(variables(), [&] {
    for (std::size_t shard = 0; shard < parts.size(); ++shard) (variables()[shard].*member)(parts[shard]);
  });
}

const ShardedVariable& ShardedVariable::assign(const Tensor& value) const {
  assign_by("assign", &Variable::assign, value);
  return *this;
}
const ShardedVariable& ShardedVariable::assign_add(const Tensor& value) const {
  assign_by("assign_add", &Variable::assign_add, value);
  return *this;
}
const ShardedVariable& ShardedVariable::assign_sub(const Tensor& value) const {
  assign_by("assign_sub", &Variable::assign_sub, value);
  return *this;
}

const ShardedVariable& ShardedVariable::scatter_add(const IndexedSlices& rows) const {
  scatter_by("scatter_add", &Variable::scatter_add, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_sub(const IndexedSlices& rows) const {
  scatter_by("scatter_sub", &Variable::scatter_sub, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_mul(const IndexedSlices& rows) const {
  scatter_by("scatter_mul", &Variable::scatter_mul, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_div(const IndexedSlices& rows) const {
  scatter_by("scatter_div", &Variable::scatter_div, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_min(const IndexedSlices& rows) const {
  scatter_by("scatter_min", &Variable::scatter_min, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_max(const IndexedSlices& rows) const {
  scatter_by("scatter_max", &Variable::scatter_max, rows);
  return *this;
}
const ShardedVariable& ShardedVariable::scatter_update(const IndexedSlices& rows) const {
  scatter_by("scatter_update", &Variable::scatter_update, rows);
  return *this;
}

std::vector<GradientAndVariable> ShardedVariable::split_gradient(const Tensor& gradient) const {
  require_fitting("a gradient", gradient, gradient.shape(), gradient.dtype(), *this);
  const std::vector<Tensor> parts = split(gradient);
  std::vector<GradientAndVariable> result;
  for (std::size_t shard = 0; shard < parts.size(); ++shard)
    result.push_back({parts[shard], variables()[shard]});
  return result;
}

std::vector<SparseGradientAndVariable> ShardedVariable::split_gradient(const IndexedSlices& gradient) const {
  validate(gradient);
  require_fitting("a gradient", gradient, gradient.dense_shape, gradient.values.dtype(), *this);
  const std::vector<IndexedSlices> parts = split(gradient);
  std::vector<SparseGradientAndVariable> result;
  for (std::size_t shard = 0; shard < parts.size(); ++shard)
    result.push_back({parts[shard], variables()[shard]});
  return result;
}

}  // namespace cohort
